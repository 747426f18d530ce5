//! Commands that continue after the call that started them.

use cofferdam_tests::program::{ProgramOutput, TestHome};
use cofferdam_tests::wire::{
    ProviderServer, ScriptedReply, both_providers, call_reply, text_reply,
};
use serde_json::{Value, json};

use super::new_home;

pub(super) fn background(command: &str) -> ScriptedReply {
    call_reply("bash", json!({"command": command, "background": true}))
}

pub(super) fn jobs(input: Value) -> ScriptedReply {
    call_reply("jobs", input)
}

/// Runs a request with these replies in mode `auto`. Returns the results of all calls, in order.
pub(super) fn run_calls(
    home: &TestHome,
    replies: Vec<ScriptedReply>,
) -> (ProgramOutput, Vec<String>) {
    let [provider, _] = both_providers();
    let server = provider.serve(replies.into_iter().chain([text_reply("Done.")]));
    let ran = home.start(home.model_command(&server, &["--mode", "auto"])).wait_for_exit();
    assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, "Done.\n"), "{ran:?}");
    (ran, results(&server))
}

fn results(server: &ProviderServer) -> Vec<String> {
    let requests = server.requests();
    let results = requests.iter().skip(1).flat_map(|request| request.tool_results());
    results.map(|result| result.text.trim_end().to_owned()).collect()
}

#[test]
fn a_background_command_runs_beside_others_and_its_output_is_read_once() {
    let home = new_home();
    let server = "echo ready; while [ ! -e /tmp/never ]; do sleep 0.1; done";
    let (_, results) = run_calls(
        &home,
        vec![
            background(server),
            call_reply("bash", json!({"command": "echo beside"})),
            jobs(json!({"action": "read", "id": 1, "wait": 0})),
            jobs(json!({"action": "list"})),
            jobs(json!({"action": "stop", "id": 1})),
            jobs(json!({"action": "stop", "id": 1})),
            jobs(json!({"action": "read", "id": 2})),
        ],
    );
    assert_eq!(results[0], "background command 1: running\nready");
    assert_eq!(results[1], "beside");
    assert_eq!(results[2], "background command 1: running\n(no new output)");
    assert!(results[3].starts_with(&format!("1: `{server}`: running after ")), "{results:?}");
    assert_eq!(results[4], "background command 1: stopped on request");
    assert_eq!(results[5], results[4], "a second stop changes nothing");
    assert!(results[6].contains("no background command has the number 2"), "{results:?}");
}

#[test]
fn the_changes_of_a_background_command_are_committed_when_it_ends() {
    let home = new_home().with_file("old", "1");
    let command = "echo 2 > old; mkdir -p out/.vscode .git/hooks; echo x > out/file; \
        echo x > .git/hooks/post-commit; echo x > out/.vscode/tasks.json; echo made; read line; \
        echo got $line";
    let look = "cat old; ls -A; test ! -e out || ls -A out";
    let (_, results) = run_calls(
        &home,
        vec![
            background(command),
            call_reply("bash", json!({"command": look})),
            jobs(json!({"action": "write", "id": 1, "text": "word\n"})),
            jobs(json!({"action": "read", "id": 1, "until": "end", "wait": 30})),
            call_reply("bash", json!({"command": look})),
        ],
    );
    assert_eq!(results[0], "background command 1: running\nmade");
    assert_eq!(results[1], "1old", "nothing is visible before the end: {results:?}");
    let end = [results[2].as_str(), results[3].as_str()].concat();
    assert!(end.contains("got word") && end.contains("ended with exit code 0"), "{results:?}");
    for discarded in [".git/hooks/post-commit", "out/.vscode"] {
        assert!(end.contains(discarded) && end.contains("not allowed"), "{discarded}: {end}");
    }
    assert!(results[4].starts_with("2\n") && results[4].contains("file"), "{results:?}");
    assert!(!home.has_file(".git/hooks/post-commit") && !home.has_file("out/.vscode/tasks.json"));
    // Undo covers it like any other command, and the audit log has its changes.
    let log = home.run(&["audit", "show", "--json"]).stdout;
    let ended = log.lines().find(|line| line.contains("\"background-ended\"")).expect(&log);
    assert!(ended.contains("\"path\":\"old\"") && ended.contains("\"exited\":0"), "{ended}");
    let shown = home.run(&["audit", "show"]).stdout;
    assert!(shown.contains("created out") && shown.contains("changed old"), "{shown}");
    let events = home.run(&["audit", "export", "--format", "ocsf"]).stdout;
    let changed = |name: &str| {
        events.lines().any(|line| {
            line.contains("\"class_uid\":1001") && line.contains(&format!("\"path\":\"{name}\""))
        })
    };
    assert!(changed("old") && changed("out"), "{events}");
    assert!(log.contains("\"background\":true"), "{log}");
    assert!(log.contains("\"kind\":\"input\""), "{log}");
    assert_eq!(home.run(&["audit", "verify"]).exit_code, 0);
    assert_eq!(home.run(&["undo"]).exit_code, 0);
    assert_eq!(std::fs::read_to_string(home.workspace().join("old")).expect("it exists"), "1");
    assert!(!home.has_file("out/file"));
}

#[test]
fn the_end_of_the_session_ends_background_commands_and_keeps_their_changes() {
    let home = new_home();
    let command = "echo kept > file; (setsid sleep 1000 &); trap 'echo last' TERM; \
        while :; do sleep 0.1; done";
    let (ran, results) = run_calls(&home, vec![background(command)]);
    assert!(results[0].starts_with("background command 1: running"), "{results:?}");
    assert!(ran.stderr.contains("stopped on request"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(home.workspace().join("file")).expect("kept"), "kept\n");
    let processes = std::process::Command::new("ps").args(["-eo", "args"]).output().expect("ps");
    let processes = String::from_utf8_lossy(&processes.stdout).into_owned();
    assert!(!processes.contains("sleep 1000"), "{processes}");
}

#[test]
fn a_pseudo_terminal_is_one_and_interrupts_its_programs() {
    let start = json!({
        "command": "export PATH=/usr/bin:/bin; test -t 0 && test -t 1 && test -t 2 && stty size; \
            tty >/dev/null; \
            exec python3 -iqu",
        "background": true,
        "terminal": true,
    });
    let (_, results) = run_calls(
        &new_home(),
        vec![
            call_reply("bash", start),
            jobs(json!({"action": "read", "id": 1})),
            jobs(json!({"action": "write", "id": 1, "text": "print(6 * 7)\n"})),
            jobs(json!({"action": "write", "id": 1, "text": "import time; time.sleep(1000)\n"})),
            jobs(json!({"action": "write", "id": 1, "text": "\u{3}"})),
            jobs(json!({"action": "write", "id": 1, "text": "exit(5)\n"})),
            jobs(json!({"action": "read", "id": 1, "until": "end", "wait": 20})),
        ],
    );
    let all = results.concat();
    assert!(all.contains("40 120"), "the size of the terminal: {all}");
    assert!(all.contains("42") && all.contains("KeyboardInterrupt"), "{all}");
    assert!(all.contains("ended with exit code 5"), "{all}");
}

#[test]
fn a_command_that_fails_at_once_says_so_and_input_can_be_closed() {
    let (_, results) = run_calls(
        &new_home(),
        vec![
            background("echo no >&2; exit 3"),
            background("sort"),
            jobs(json!({"action": "write", "id": 2, "text": "b\na\n", "close": true})),
            jobs(json!({"action": "read", "id": 2, "until": "end", "wait": 20})),
            jobs(json!({"action": "write", "id": 2, "text": "late\n"})),
        ],
    );
    assert_eq!(results[0], "background command 1: ended with exit code 3\nno");
    assert!(results[1].contains("running"), "{results:?}");
    let end = [results[2].as_str(), results[3].as_str()].concat();
    assert!(end.contains("a\nb") && end.contains("exit code 0"), "{results:?}");
    assert!(results[4].contains("the command has ended"), "{results:?}");
}

#[test]
fn deny_rules_cover_background_commands_and_their_input() {
    let home = new_home();
    let rules = "[commands]\nallow = [\"sh *\", \"echo *\"]\ndeny = [\"git push *\"]\n";
    home.write_file("config/cofferdam/policy.toml", rules);
    let [provider, _] = both_providers();
    let server = provider.serve([
        background("git push origin"),
        background("sh -i"),
        jobs(json!({"action": "write", "id": 1, "text": "echo one\n"})),
        jobs(json!({"action": "write", "id": 1, "text": "git push origin\n"})),
        text_reply("Done."),
    ]);
    // Without a terminal, what needs approval is denied. No `allow` rule covers input.
    home.start(home.model_command(&server, &["--mode", "ask"])).wait_for_exit();
    let results = results(&server);
    assert!(results[0].contains("denied (policy)"), "{results:?}");
    assert!(results[1].starts_with("background command 1: running"), "{results:?}");
    assert!(results[2].contains("denied (nobody-to-ask)"), "{results:?}");
    assert!(results[3].contains("git push"), "{results:?}");
}

#[test]
fn background_commands_need_a_private_view_and_a_session() {
    let home = new_home();
    home.write_file("config/cofferdam/config.toml", "[commands]\nat_most = \"kernel\"\n");
    let (_, results) = run_calls(&home, vec![background("sleep 100")]);
    assert!(results[0].contains("denied (no-sandbox)"), "{results:?}");
    assert!(results[0].contains("cannot run in the background"), "{results:?}");
    let input = r#"{"command": "sleep 100", "background": true}"#;
    let ran = new_home().run(&["tools", "call", "bash", input, "--mode", "auto"]);
    assert_eq!(ran.exit_code, 1);
    assert!(ran.stderr.contains("belongs to none"), "{ran:?}");
}

#[test]
fn at_most_sixteen_run_at_the_same_time_and_floods_are_bounded() {
    let home = new_home();
    let mut replies: Vec<_> = (0..17).map(|_| background("sleep 100")).collect();
    replies.push(jobs(json!({"action": "stop", "id": 1})));
    replies.push(background("yes | head -c 5000000; echo last; sleep 100"));
    replies.push(jobs(json!({"action": "read", "id": 17, "wait": 5})));
    let (_, results) = run_calls(&home, replies);
    assert!(results[15].contains("background command 16: running"), "{results:?}");
    assert!(results[16].contains("16 background commands run already"), "{results:?}");
    let flood = [results[18].as_str(), results[19].as_str()].concat();
    assert!(flood.contains("bytes omitted") && flood.contains("last"), "{}", flood.len());
}

#[test]
fn a_change_that_conflicts_is_reported_and_not_overwritten() {
    let home = new_home().with_file("shared", "old\n");
    let (_, results) = run_calls(
        &home,
        vec![
            background("echo mine > shared; echo x > other; echo made; read line"),
            call_reply("bash", json!({"command": "echo theirs > shared"})),
            jobs(json!({"action": "write", "id": 1, "text": "\n"})),
            jobs(json!({"action": "read", "id": 1, "until": "end", "wait": 20})),
        ],
    );
    let end = [results[2].as_str(), results[3].as_str()].concat();
    assert!(end.contains("all changes of the command were discarded"), "{results:?}");
    assert!(end.contains("shared"), "{results:?}");
    let shared = std::fs::read_to_string(home.workspace().join("shared")).expect("it exists");
    assert_eq!(shared, "theirs\n");
    assert!(!home.has_file("other"));
}

#[test]
fn a_killed_host_leaves_no_process_and_no_change() {
    let home = new_home();
    let [provider, _] = both_providers();
    let server = provider.serve([
        background("echo x > file; echo ready; sleep 4711"),
        text_reply("Never read.").after_release(),
    ]);
    let running = home.start(home.model_command(&server, &["--mode", "auto"]));
    server.wait_for_requests(2);
    // A run that is dropped is killed.
    drop(running);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let is_left = || {
        let listed = std::process::Command::new("ps").args(["-eo", "args"]).output().expect("ps");
        String::from_utf8_lossy(&listed.stdout).contains("sleep 4711")
    };
    while is_left() {
        assert!(std::time::Instant::now() < deadline, "a process is left");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(!home.has_file("file"));
}

#[test]
fn with_a_deny_rule_nothing_is_sent_to_a_background_command_unasked() {
    let home = new_home().with_file("kept", "");
    home.write_file("config/cofferdam/policy.toml", "[commands]\ndeny = [\"rm *\"]\n");
    let write = |text: &str| jobs(json!({"action": "write", "id": 1, "text": text}));
    let (_, results) = run_calls(
        &home,
        vec![background("sh"), write("alias x=rm\n"), write("x kept\n"), write("rm kept\n")],
    );
    for asked in &results[1..3] {
        assert!(asked.contains("needs approval") && asked.contains("might cover it"), "{asked}");
    }
    assert!(results[3].contains("denied (policy)"), "{results:?}");
    assert!(home.has_file("kept"));
}
