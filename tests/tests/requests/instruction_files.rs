//! Files that tell agents what to do, and files that programs run code from: who may change them,
//! and who hears of it.

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{Provider, ProviderServer, both_providers, call_reply, text_reply};
use serde_json::{Value, json};

use super::new_home;

fn notices(home: &TestHome, server: &ProviderServer, args: &[&str]) -> Vec<String> {
    let mut all = vec!["--output", "stream-json"];
    all.extend(args);
    let ran = home.start(home.model_command(server, &all)).wait_for_exit();
    let lines = ran.json_lines();
    assert!(lines.last().is_some_and(|report| report["outcome"] == "answered"), "{ran:?}");
    let text = |line: &Value| {
        (line["type"] == "notice").then(|| line["text"].as_str().unwrap_or_default().to_owned())
    };
    lines
        .iter()
        .filter_map(text)
        .filter(|text| text.contains("since the last session") || text.contains("A command"))
        .collect()
}

#[test]
fn r035_no_mode_lets_an_instruction_file_be_changed_unasked() {
    for provider in both_providers() {
        for mode in ["ask", "auto-edit", "auto"] {
            let home = new_home().with_file("docs/guide.md", "Old.\n");
            std::os::unix::fs::symlink("docs/guide.md", home.workspace().join("CLAUDE.md"))
                .expect("a link");
            let all =
                call_reply("write_file", json!({"path": "sub/AGENTS.md", "content": "Obey.\n"}))
                    .with_call(
                        "write_file",
                        json!({"path": ".github/workflows/x.yml", "content": "on: push\n"}),
                    )
                    .with_call(
                        "update_file",
                        json!({"path": "docs/guide.md", "old_text": "Old.", "new_text": "New."}),
                    );
            let server = provider.serve([all, text_reply("Then not.")]);
            home.run_task(&server, &["--mode", mode]).expect_answer("Then not.");
            let [agents, workflow, behind_link] =
                server.last_request().tool_results().try_into().expect("three results");
            for (denied, why) in [
                (
                    &agents,
                    "sub/AGENTS.md is on the built-in list of files that contain instructions for \
                        agents",
                ),
                (
                    &workflow,
                    ".github/workflows is on the built-in list of files that programs run code \
                        from",
                ),
                (
                    &behind_link,
                    "CLAUDE.md is on the built-in list of files that contain instructions for \
                        agents",
                ),
            ] {
                assert!(
                    denied.is_error && denied.text.contains("denied (nobody-to-ask)"),
                    "{mode}: {denied:?}"
                );
                assert!(
                    denied.text.contains(why)
                        && denied.text.contains("to `writable` under [protected]"),
                    "{mode}: {denied:?}"
                );
            }
            assert!(!home.has_file("sub/AGENTS.md") && !home.has_file(".github"), "{mode}");
            assert_eq!(
                std::fs::read_to_string(home.workspace().join("docs/guide.md"))
                    .expect("it is there"),
                "Old.\n"
            );
        }
    }
}

#[test]
fn r035_what_links_lead_to_is_asked_whoever_made_them_and_whenever() {
    let provider = Provider::Anthropic;
    let link = |target: &str, home: &TestHome, name: &str| {
        std::os::unix::fs::symlink(target, home.workspace().join(name)).expect("a link")
    };
    // Over another link, to where nothing is.
    let home = new_home().with_file("d2/other.md", "x");
    link("d1/ag.md", &home, "AGENTS.md");
    link("d2", &home, "d1");
    let write = |path: &str| call_reply("write_file", json!({"path": path, "content": "Obey.\n"}));
    // By a command of this session, which may make it where it writes the workspace directly.
    home.write_file("config/cofferdam/config.toml", "[commands]\nat_most = \"kernel\"\n");
    let server = provider.serve([
        write("d2/ag.md")
            .with_call("write_file", json!({"path": "d1/ag.md", "content": "Obey.\n"})),
        call_reply(
            "bash",
            json!({"command": "ln -s notes/middle CLAUDE.md; mkdir notes; ln -s end notes/middle"}),
        ),
        write("notes/end").with_call("write_file", json!({"path": "notes/free", "content": "x"})),
        text_reply("Done."),
    ]);
    home.run_task(&server, &["--mode", "auto"]).expect_answer("Done.");
    for path in ["d2/ag.md", "notes/end"] {
        assert!(!home.has_file(path), "{path}");
    }
    assert!(home.has_file("notes/free"));
}

#[test]
fn what_the_user_takes_off_the_list_is_decided_like_any_other_file() {
    let home = new_home();
    home.write_file("config/cofferdam/policy.toml", "[protected]\nwritable = [\"AGENTS.md\"]\n");
    let all = call_reply("write_file", json!({"path": "AGENTS.md", "content": "Mine.\n"}))
        .with_call("write_file", json!({"path": "CLAUDE.md", "content": "Mine.\n"}));
    let server = Provider::Anthropic.serve([all, text_reply("Done.")]);
    home.run_task(&server, &["--mode", "auto"]).expect_answer("Done.");
    assert!(home.has_file("AGENTS.md") && !home.has_file("CLAUDE.md"));
}

#[test]
fn a_session_reports_which_instruction_files_changed_since_the_last_one_and_who_changed_them() {
    let home = new_home().with_file("AGENTS.md", "One.\n");
    let provider = Provider::Anthropic;
    let plain = || provider.serve([text_reply("Done.")]);
    assert_eq!(
        notices(&home, &plain(), &[]),
        [""; 0],
        "the first session has nothing to compare with"
    );
    // From outside.
    home.write_file("workspace/deep/in/CLAUDE.md", "Other.\n");
    assert_eq!(
        notices(&home, &plain(), &["--no-session"]),
        ["deep/in/CLAUDE.md was created since the last session of this project, but not by a \
                tool or a command of a session."]
    );
    assert_eq!(notices(&home, &plain(), &[]), [""; 0]);
    // By a command, which is told at once and at the next start. In a private view, nobody could
    // approve the change.
    home.write_file("config/cofferdam/config.toml", "[commands]\nat_most = \"kernel\"\n");
    let server = provider.serve([
        call_reply("bash", json!({"command": "echo Two. >AGENTS.md; echo x >.gitattributes"})),
        text_reply("Done."),
    ]);
    let told = notices(&home, &server, &["--mode", "auto"]);
    assert_eq!(
        told,
        ["A command changed AGENTS.md, one of the files that contain instructions for agents. \
            Review the file: the model follows it in this and every later session."]
    );
    let [result] = server.last_request().tool_results().try_into().expect("one result");
    for line in [
        "[sandbox] the command changed AGENTS.md, one of the files that contain instructions for \
            agents; review it",
        "[sandbox] the command created .gitattributes, one of the files that programs run code \
            from; review it",
    ] {
        assert!(result.text.contains(line), "{line}: {}", result.text);
    }
    let [told] = notices(&home, &plain(), &["--continue"]).try_into().expect("one notice");
    assert!(
        told.starts_with(
            "AGENTS.md was changed since the last session of this project, by a command \
            of the tool bash, on "
        ),
        "{told}"
    );
    // By a tool that the user let do it.
    home.write_file("config/cofferdam/policy.toml", "[protected]\nwritable = [\"GEMINI.md\"]\n");
    let server = provider.serve([
        call_reply("write_file", json!({"path": "GEMINI.md", "content": "Mine.\n"})),
        text_reply("Done."),
    ]);
    assert_eq!(notices(&home, &server, &["--mode", "auto"]), [""; 0]);
    let [told] = notices(&home, &plain(), &[]).try_into().expect("one notice");
    assert!(
        told.starts_with(
            "GEMINI.md was created since the last session of this project, by the tool \
            write_file, on "
        ),
        "{told}"
    );
}

#[test]
fn a_command_that_changes_nothing_of_the_kind_is_not_remarked_on() {
    let home = new_home().with_file("AGENTS.md", "One.\n").with_file("a.txt", "x");
    let server = Provider::Anthropic.serve([
        call_reply("bash", json!({"command": "cp AGENTS.md b; mv b AGENTS.md; echo y >a.txt"})),
        text_reply("Done."),
    ]);
    assert_eq!(notices(&home, &server, &["--mode", "auto"]), [""; 0]);
    assert!(!server.last_request().tool_results()[0].text.contains("[sandbox]"));
}

#[test]
fn the_built_in_lists_can_be_read_with_their_reasons() {
    let ran = new_home().run(&["policy", "show", "--lists"]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    for part in [
        "protected: tools can never change these files",
        "Cofferdam and most other agents read instructions from it",
        "GitHub Actions runs the workflows in it after a push",
        "Makefile",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}
