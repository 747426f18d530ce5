//! The command reference, `host/docs/reference/cli.md`, which the program generates.
//!
//! `UPDATE_CLI_REFERENCE=1 cargo test -p cofferdam-tests --test docs cli_reference` rewrites it.

use super::root;

#[test]
fn the_cli_reference_is_what_the_program_generates() {
    let path = root().join("host/docs/reference/cli.md");
    let generated = cofferdam_cli::cli_reference();
    let long: Vec<&str> = generated.lines().filter(|line| line.chars().count() > 120).collect();
    assert!(long.is_empty(), "longer than 120 columns: {long:#?}");
    if std::env::var_os("UPDATE_CLI_REFERENCE").is_some() {
        std::fs::write(&path, &generated).expect("it can be written");
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    let difference = recorded.lines().zip(generated.lines()).find(|(old, new)| old != new);
    assert!(
        recorded == generated,
        "host/docs/reference/cli.md is out of date, first at {difference:?}\n\
         UPDATE_CLI_REFERENCE=1 cargo test -p cofferdam-tests --test docs cli_reference"
    );
}
