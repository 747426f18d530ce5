//! `cofferdam trust` at a terminal and without one.

use std::os::unix::fs::PermissionsExt as _;

use cofferdam_tests::terminal::TestTerminal;

use super::new_home;

const PROJECT: &str = "workspace/.cofferdam/policy.toml";

#[test]
fn trust_is_for_somebody_who_has_seen_the_file() {
    let home = new_home();
    home.write_file(PROJECT, "# \u{202e}hidden\n[commands]\nallow = [\"make *\"]\n");
    let is_trusted = || home.run(&["trust", "--show"]).exit_code == 0;
    let mut terminal = TestTerminal::start(&home.command(&["trust"]), None);
    terminal.wait_for_output("allow = [\"make *\"]");
    terminal.wait_for_output("[y/N]");
    terminal.type_keys("\n");
    terminal.wait_for_output("The policy file is not trusted.");
    assert!(!is_trusted());
    let mut terminal = TestTerminal::start(&home.command(&["trust"]), None);
    // What it says cannot change how it looks.
    terminal.wait_for_output("\\u{202e}hidden");
    terminal.wait_for_output("[y/N]");
    terminal.type_keys("y\n");
    terminal.wait_for_output("Trusted with its current content");
    assert!(is_trusted());
    let mode = std::fs::metadata(home.path().join("state/cofferdam/trust.json"))
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    home.write_file(PROJECT, "[commands]\nallow = [\"*\"]\n");
    assert!(!is_trusted(), "another content");
}

#[test]
fn a_file_that_changes_during_the_question_is_not_called_trusted() {
    let home = new_home();
    home.write_file(PROJECT, "[commands]\nallow = [\"make *\"]\n");
    for new_text in ["[commands]\nallow = [\"*\"]\n", "no policy"] {
        let mut terminal = TestTerminal::start(&home.command(&["trust"]), None);
        terminal.wait_for_output("allow = [\"make *\"]");
        terminal.wait_for_output("[y/N]");
        home.write_file(PROJECT, new_text);
        terminal.type_keys("y\n");
        terminal.wait_for_output("Trusted only with the content that you approved");
        terminal.wait_for_output("The file has changed meanwhile, so it is not trusted now.");
        assert_eq!(terminal.wait_for_exit(), 1, "{}", terminal.raw_output());
        assert!(!terminal.raw_output().contains("current content"));
        assert_eq!(home.run(&["trust", "--show"]).exit_code, 1);
        // The content that was shown is trusted as soon as it is back.
        home.write_file(PROJECT, "[commands]\nallow = [\"make *\"]\n");
        assert_eq!(home.run(&["trust", "--show"]).exit_code, 0);
    }
}

#[test]
fn trust_without_a_terminal_names_the_content() {
    let home = new_home();
    let ran = home.run(&["trust"]);
    assert!(ran.exit_code == 1 && ran.stderr.contains("no policy file"), "{ran:?}");
    home.write_file(PROJECT, "[commands]\nallow = [\"make *\"]\n");
    let ran = home.run(&["trust"]);
    assert!(
        ran.exit_code == 1 && ran.stderr.contains("there is no terminal for confirmation"),
        "{ran:?}"
    );
    let ran = home.run(&["trust", "--digest", &"0".repeat(64)]);
    assert!(ran.exit_code == 1 && ran.stderr.contains("digest mismatch"), "{ran:?}");
    let shown = home.run(&["trust", "--show"]).stdout;
    let digest = shown.trim().rsplit(", ").next().expect("it ends with the digest");
    assert_eq!(home.run(&["trust", "--digest", digest]).exit_code, 0);
    assert_eq!(home.run(&["trust", "--show"]).exit_code, 0);
    assert_eq!(home.run(&["trust", "--revoke"]).exit_code, 0);
    assert_eq!(home.run(&["trust", "--show"]).exit_code, 1);
    assert_eq!(home.run(&["trust", "--revoke"]).exit_code, 1);
}

#[test]
fn what_is_not_understood_is_not_trusted() {
    let home = new_home();
    home.write_file(PROJECT, "profile = \"develop\"\n");
    let digest = home
        .run(&["trust", "--show"])
        .stdout
        .trim()
        .rsplit(", ")
        .next()
        .map(str::to_owned)
        .expect("it tells it");
    let ran = home.run(&["trust", "--digest", &digest]);
    assert!(
        ran.exit_code == 78
            && ran
                .stderr
                .contains("policy.toml:1:11: the policy file of a project cannot choose a profile"),
        "{ran:?}"
    );
}
