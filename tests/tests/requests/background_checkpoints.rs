//! Checkpoints of background commands that the model asks for.

use cofferdam_tests::wire::{ScriptedReply, call_reply};
use serde_json::{Value, json};

use super::background_commands::{background, jobs, run_calls};
use super::new_home;

fn commit() -> ScriptedReply {
    jobs(json!({"action": "commit", "id": 1}))
}

fn write(text: &str) -> ScriptedReply {
    jobs(json!({"action": "write", "id": 1, "text": text}))
}

#[test]
fn the_model_commits_what_a_command_has_written_and_the_command_goes_on() {
    let home = new_home().with_file("old", "1\n");
    let command = "echo 2 > old; mkdir new; echo a > new/a; echo x > AGENTS.md; echo ready; \
        read line; echo $line >> old; rm new/a; echo b > new/b; echo again; read line; \
        echo last > new/last";
    let look = || {
        call_reply(
            "bash",
            json!({"command": "cat old; test ! -e new || ls new; test ! -e AGENTS.md"}),
        )
    };
    let (ran, results) = run_calls(
        &home,
        vec![
            background(command),
            look(),
            commit(),
            look(),
            write("word\n"),
            look(),
            commit(),
            commit(),
            look(),
            write("\n"),
            jobs(json!({"action": "read", "id": 1, "until": "end", "wait": 20})),
            look(),
        ],
    );
    assert_eq!(results[1], "1");
    let first = &results[2];
    assert!(first.starts_with("background command 1: running"), "{first}");
    assert!(first.contains("[sandbox] 2 changes were committed; the command continues"), "{first}");
    assert!(first.contains("the change of AGENTS.md was not committed: denied"), "{first}");
    assert_eq!(results[3], "2\na");
    assert_eq!(results[5], "2\na", "nothing is visible before the next checkpoint");
    assert!(results[6].contains("3 changes were committed"), "{results:?}");
    assert!(results[7].contains("there was nothing to commit"), "{results:?}");
    assert_eq!(results[8], "2\nword\nb");
    let end = [results[9].as_str(), results[10].as_str()].concat();
    assert!(end.contains("ended with exit code 0"), "{results:?}");
    assert!(end.contains("the change of AGENTS.md was discarded"), "{results:?}");
    assert_eq!(results[11], "2\nword\nb\nlast", "{ran:?}");
    assert!(!home.has_file("AGENTS.md"));
    // The log has a record for each of them, and each is a change of its own.
    let log = home.run(&["audit", "show", "--json"]).stdout;
    let records: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|record: &Value| record["kind"] == "background-checkpoint")
        .collect();
    assert_eq!(records.len(), 3, "{log}");
    assert_eq!(records[0]["command"]["changes"][0]["path"], "new");
    assert_eq!(records[2]["command"]["changes"], Value::Null);
    assert_eq!(home.run(&["audit", "verify"]).exit_code, 0);
    let diff = home.run(&["diff", "--last", "3"]).stdout;
    assert!(diff.contains("new/last") && diff.contains("+word"), "{diff}");
    for expected in ["2\nword\n", "2\n", "1\n"] {
        let undone = home.run(&["undo"]);
        assert_eq!(undone.exit_code, 0, "{undone:?}");
        let old = std::fs::read_to_string(home.workspace().join("old")).expect("it exists");
        assert_eq!(old, expected);
    }
    assert!(!home.has_file("new"));
}

#[test]
fn a_command_that_changes_no_files_has_no_checkpoint() {
    let home = new_home();
    let rules = "[commands]\nallow = [{ pattern = \"sleep *\", writes = false }]\n";
    home.write_file("config/cofferdam/policy.toml", rules);
    let (_, results) = run_calls(&home, vec![background("sleep 100"), commit()]);
    assert!(results[1].contains("nothing was committed"), "{results:?}");
    assert!(results[1].contains("the command cannot change files"), "{results:?}");
}
