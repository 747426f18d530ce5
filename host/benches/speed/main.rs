//! What the walls cost: `cargo bench`.
//!
//! Each line measures one thing beside its native counterpart in the same run, turn by turn, and
//! prints the medians and their ratio; absolute times belong to the machine, ratios to the program.
//! The targets stand in the last column.
//!
//! `cargo bench -- turn` measures one part alone: `calls`, `turn`, `history` or `grep`. `small`
//! leaves out the big tree.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops at what it did not expect"
)]

mod calls;
mod commands;
mod folders;
mod history;
mod measure;
mod search;
mod turn;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let said = |word: &str| words.iter().any(|said| said == word);
    let any = ["calls", "commands", "turn", "history", "grep"].into_iter().any(said);
    let wanted = |word: &str| !any || said(word);
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
        commands::run(&runtime);
    }
    if wanted("turn") {
        measure::title("a turn: a replayed response with one call, and its result");
        turn::run(&runtime);
    }
    if wanted("history") {
        measure::title("a long conversation");
        history::run();
    }
    if wanted("grep") {
        measure::title("grep against rg with the same threads");
        search::run(&runtime, said("small"));
    }
    runtime.shutdown_background();
}
