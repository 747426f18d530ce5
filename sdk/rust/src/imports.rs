//! The imported interfaces: in a component those of the host, in a native test those of
//! [`crate::test`].

#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::cofferdam::plugin::{
    agents, commands, jobs, plans, progress, state, workspace,
};
#[cfg(target_family = "wasm")]
pub(crate) use crate::http::wasi as http;

#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::test::imports::{
    agents, commands, http, jobs, plans, progress, state, workspace,
};
