//! The host bindings of the contract, generated from `wit/`.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::cast_possible_truncation,
    reason = "generated code"
)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "plugin-with-everything",
    imports: {
        "cofferdam:plugin/agents.delegate": async,
        "cofferdam:plugin/commands.run": async,
        "cofferdam:plugin/plans.present": async,
        "cofferdam:plugin/workspace.next-entries": async,
        "cofferdam:plugin/workspace.next-files": async,
    },
    exports: { default: async },
});
