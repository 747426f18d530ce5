//! The demo, from its first line to its last.

use super::new_home;

/// Without what differs from run to run: times, the folder, and which of several parallel calls
/// ended first.
fn normalize_output(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(strip_times).collect();
    let is_call = |line: &String| line.starts_with("  ✓");
    for group in lines.chunk_by_mut(|a, b| is_call(a) && is_call(b)) {
        group.sort();
    }
    lines.join("\n")
}

fn strip_times(line: &str) -> String {
    if line.contains("/cofferdam-demo-") {
        return "[the sample project]".to_owned();
    }
    match line.split_once("read-only, ").or(line.split_once("write, ")) {
        Some((before, time)) => {
            let tier = line[before.len()..line.len() - time.len()].to_owned();
            format!("{before}{tier}[time]")
        }
        None => line.to_owned(),
    }
}

#[test]
fn the_demo_shows_parallel_reads_refusals_a_command_and_an_answer() {
    let home = new_home();
    let ran = home.run(&["demo", "--fast"]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    let left =
        std::fs::read_dir(home.path().join("state/cofferdam/undo")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "what could be undone is gone with the files");
    insta::assert_snapshot!("stderr", normalize_output(&ran.stderr));
    insta::assert_snapshot!("stdout", ran.stdout);
}
