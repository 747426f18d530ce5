//! The overhead of the sandboxes: `cargo bench`.
//!
//! Each line alternates runs of Cofferdam and of a native counterpart, and prints both medians and
//! their ratio. Ratios compare across machines; absolute times do not. The last column is the
//! target.
//!
//! Arguments select parts: `cargo bench -- turn` runs only `turn`. The parts are `calls`,
//! `commands`, `turn`, `history`, `grep` and `mcp`. `small` leaves out the large tree of `grep`.
//! `start`, `files`, `build`, `tree` and `daily` select parts of `commands`.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops at what it did not expect"
)]

mod calls;
mod commands;
mod daily;
mod folders;
mod history;
mod mcp;
mod measure;
mod search;
mod turn;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_selected = |word: &str| arguments.iter().any(|argument| argument == word);
    let has_selection =
        ["calls", "commands", "turn", "history", "grep", "mcp"].into_iter().any(is_selected);
    let wanted = |word: &str| !has_selection || is_selected(word);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let _inside = runtime.enter();
    if wanted("calls") {
        measure::title("calls: a fresh store, instance, call and drop");
        calls::run(&runtime);
        measure::title("a process from start to a tool's result");
        calls::cold();
    }
    if wanted("commands") {
        measure::title("a command in its sandbox");
        commands::run(&runtime, &is_selected);
    }
    if wanted("turn") {
        measure::title("a turn: a replayed response with one call, and its result");
        turn::run(&runtime);
    }
    if wanted("history") {
        measure::title("a long conversation");
        history::run();
    }
    if wanted("mcp") {
        measure::title("calls over MCP on standard input and output");
        mcp::run(&runtime);
    }
    if wanted("grep") {
        measure::title("grep against rg with the same threads");
        search::run(&runtime, is_selected("small"));
    }
    runtime.shutdown_background();
}
