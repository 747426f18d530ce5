//! The tables of modes say what modes do.

use cofferdam::policy::{
    Action, ApprovalMode, HostAddress, Policy, ToolId, Verdict, WorkspacePath,
};

use super::sources::workspace_root;

/// The rows of the table of modes in a text: the mode, and what becomes of reading, commands,
/// writes and requests.
fn mode_rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().map(|line| line.trim_start_matches("//!").trim());
    let table = lines
        .skip_while(|line| !line.starts_with("| mode |"))
        .take_while(|line| line.starts_with('|'));
    table
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

#[test]
fn r035_the_tables_of_modes_are_true() {
    let (path, host) = (WorkspacePath::root(), HostAddress::parse("docs.rs").expect("a host"));
    let acts = [
        Action::Read(&path),
        Action::Command("ls"),
        Action::Write(Some(&path)),
        Action::Fetch { host: &host, method: "GET" },
    ];
    for file in ["host/docs/guide/commands-and-sandbox.md", "host/policy/src/lib.rs"] {
        let rows =
            mode_rows(&std::fs::read_to_string(workspace_root().join(file)).expect("it is there"));
        assert_eq!(rows.len(), ApprovalMode::ALL.len(), "{file}: {rows:?}");
        for mode in ApprovalMode::ALL {
            let row = rows
                .iter()
                .find(|row| row[0].starts_with(&format!("`{mode}`")))
                .expect("a row for each mode");
            let mut said = row[1].clone();
            for (act, cell) in acts.iter().zip(&row[1..]) {
                // `the same` repeats the cell before.
                said = if cell == "the same" { said } else { cell.clone() };
                let begins =
                    match Policy::default().verdict(mode, ToolId::new("a_tool", ""), act).verdict {
                        Verdict::Allow => "allowed",
                        Verdict::Ask => "ask",
                        Verdict::Deny => "denied",
                    };
                assert!(said.starts_with(begins), "{file}: {mode}: {act}: `{said}`");
            }
        }
    }
}
