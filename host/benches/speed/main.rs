//! What the walls cost: `cargo bench`.
//!
//! Each line measures one thing beside its native counterpart in the same run, turn by turn, and prints the medians and
//! their ratio; absolute times belong to the machine, ratios to the program. The targets stand in the last column.
//!
//! `cargo bench -- small` leaves out the big tree.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a benchmark prints, and stops at what it did not expect")]

mod calls;
mod commands;
mod folders;
mod measure;
mod search;
mod turn;

fn main() {
    let small_only = std::env::args().any(|argument| argument == "small");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let _inside = runtime.enter();
    measure::title("calls: a fresh store, instance, call and drop");
    calls::run(&runtime);
    measure::title("a process from start to a tool's result");
    calls::cold();
    measure::title("a command in its sandbox");
    commands::run(&runtime);
    measure::title("a turn: a replayed response with one call, and its result");
    turn::run(&runtime);
    measure::title("grep against rg with the same threads");
    search::run(&runtime, small_only);
    runtime.shutdown_background();
}
