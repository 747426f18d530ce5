//! What calls leave to later ones goes on with the session: what tools keep, and which files the
//! model has read.

use serde_json::{Value, json};

use cofferdam_tests::program::wait_for_sleep;

use super::{TestUser, bash_call};

fn tool_call(tool: &str, arguments: Value) -> Value {
    json!({"call": {"id": "c", "name": tool, "arguments": arguments}})
}

/// The results of the newest request, in order.
fn newest_results(user: &TestUser) -> Vec<String> {
    let transcript = user.read_transcript();
    let newest = transcript.exchanges().last().expect("there is a request");
    newest
        .turns()
        .iter()
        .flat_map(|turn| turn.calls())
        .map(|answered| answered.result.text().trim().to_owned())
        .collect()
}

const TODO_LIST: &str = "0 of 1 done:\n[>] Mend";

fn todo_list() -> Value {
    tool_call("todo", json!({"items": [{"text": "Mend", "status": "in_progress"}]}))
}

#[test]
fn r125_r126b_the_list_and_the_scratchpad_go_on_with_the_session() {
    let user = TestUser::new();
    let think = tool_call("react", json!({"action": "think", "text": "First."}));
    let first = user
        .replay_model("first.jsonl", &[json!([todo_list(), think]), json!([{"text": "Noted."}])]);
    user.run_json(&["run", "--output", "json", "--model", &first, "Note it."]);
    let (show, get) = (tool_call("todo", json!({})), tool_call("react", json!({"action": "get"})));
    let second =
        user.replay_model("second.jsonl", &[json!([show, get]), json!([{"text": "Seen."}])]);
    user.run_json(&["run", "--continue", "--output", "json", "--model", &second, "Show it."]);
    assert_eq!(newest_results(&user), [TODO_LIST, "1. thought: First."]);
    // What was deleted is not there again.
    let clear = user.replay_model(
        "clear.jsonl",
        &[json!([tool_call("react", json!({"action": "clear"}))]), json!([{"text": "Cleared."}])],
    );
    user.run_json(&["run", "--continue", "--output", "json", "--model", &clear, "Clear it."]);
    user.run_json(&["run", "--continue", "--output", "json", "--model", &second, "Show it again."]);
    let [todo, pad] = &newest_results(&user)[..] else { panic!("{:?}", newest_results(&user)) };
    assert!(todo == TODO_LIST && !pad.contains("First."), "{pad}");
}

#[test]
fn another_session_knows_nothing_of_it() {
    let user = TestUser::new();
    let first =
        user.replay_model("first.jsonl", &[json!([todo_list()]), json!([{"text": "Noted."}])]);
    user.run_json(&["run", "--output", "json", "--model", &first, "Note it."]);
    let second = user.replay_model(
        "second.jsonl",
        &[json!([tool_call("todo", json!({}))]), json!([{"text": "Seen."}])],
    );
    let ran = user.run(&["run", "--output", "stream-json", "--model", &second, "Show it."]);
    assert!(ran.exit_code == 0 && !ran.stdout.contains("Mend"), "{ran:?}");
}

#[test]
fn r108_what_was_kept_before_a_crash_is_kept_with_the_result_of_its_call() {
    let user = TestUser::new();
    let model =
        user.replay_model("long.jsonl", &[json!([todo_list()]), json!([bash_call("sleep 60.25")])]);
    let running =
        user.home.start(user.home.command(&["run", "--mode", "auto", "--model", &model, "Work."]));
    wait_for_sleep("60.25");
    // SIGKILL.
    drop(running);
    let second = user.replay_model(
        "second.jsonl",
        &[json!([tool_call("todo", json!({}))]), json!([{"text": "Seen."}])],
    );
    user.run_json(&["run", "--continue", "--output", "json", "--model", &second, "Show it."]);
    assert_eq!(newest_results(&user), [TODO_LIST]);
}

#[test]
fn r119_a_file_that_changed_between_two_requests_is_read_again_first() {
    let user = TestUser::new();
    let file = user.home.workspace().join("a.txt");
    std::fs::write(&file, "one\ntwo\n").expect("it can be written");
    let read = || json!([tool_call("read_file", json!({"path": "a.txt"}))]);
    let update = || {
        json!([tool_call(
            "update_file",
            json!({"path": "a.txt", "old_text": "two", "new_text": "three"})
        )])
    };
    let first = user.replay_model("first.jsonl", &[read(), json!([{"text": "Read."}])]);
    user.run_json(&["run", "--output", "json", "--model", &first, "Read it."]);
    std::fs::write(&file, "zero\none\ntwo\n").expect("it can be written");
    let second = user
        .replay_model("second.jsonl", &[update(), read(), update(), json!([{"text": "Done."}])]);
    user.run_json(&[
        "run",
        "--continue",
        "--mode",
        "auto",
        "--output",
        "json",
        "--model",
        &second,
        "Change it.",
    ]);
    let results = newest_results(&user);
    assert!(
        results[0].contains("has changed on disk since it was last read")
            && results[0].contains("Read it again"),
        "{results:?}"
    );
    assert!(results[2].starts_with("updated a.txt at line 3"), "{results:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "zero\none\nthree\n");
}

#[test]
fn r095_r114_a_whole_output_is_kept_with_its_session_without_keys_and_goes_with_it() {
    const KEY: &str = "sk-ant-a-key-of-this-user";
    let user = TestUser::new();
    std::fs::write(user.home.workspace().join("notes.txt"), format!("{KEY}\n"))
        .expect("it can be written");
    let model = user.replay_model(
        "long.jsonl",
        &[json!([bash_call("cat notes.txt; yes | head -c 300000")]), json!([{"text": "Seen."}])],
    );
    let mut command = user
        .home
        .command(&["run", "--mode", "auto", "--output", "json", "--model", &model, "Look."]);
    command.env("ANTHROPIC_API_KEY", KEY);
    assert_eq!(user.home.start(command).wait_for_exit().exit_code, 0);

    let result = newest_results(&user).pop().expect("there is one");
    let path = result
        .split(" is in ")
        .nth(1)
        .and_then(|rest| rest.split(" …]").next())
        .expect("the marker names a file")
        .to_owned();
    let journal =
        user.journal_files().into_iter().find(|path| path.is_file()).expect("there is one");
    assert!(
        path.starts_with(journal.with_extension("").to_str().expect("text")),
        "{path} is of {}",
        journal.display()
    );
    let whole = std::fs::read_to_string(&path).expect("it is there");
    assert!(
        whole.len() > 290_000 && whole.starts_with("[key redacted]") && !whole.contains(KEY),
        "{}",
        &whole[..100]
    );
    // It is there as long as the session is.
    let answer = user.run_answer("Again.");
    user.run_json(&["run", "--continue", "--output", "json", "--model", &answer, "Again."]);
    assert!(std::fs::exists(&path).expect("readable"));
    let id = journal.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
    let refused = user.run(&["sessions", "delete", &id]);
    assert!(
        refused.exit_code == 1 && refused.stderr.contains("use --yes") && journal.exists(),
        "{refused:?}"
    );
    assert_eq!(user.run(&["sessions", "delete", &id, "--yes"]).exit_code, 0);
    assert_eq!(user.journal_files(), Vec::<std::path::PathBuf>::new(), "nothing is left of it");
}

#[test]
fn a_request_that_is_not_recorded_keeps_no_output() {
    let user = TestUser::new();
    let model = user.replay_model(
        "long.jsonl",
        &[json!([bash_call("yes | head -c 300000")]), json!([{"text": "Seen."}])],
    );
    let ran = user.run(&[
        "run",
        "--no-session",
        "--mode",
        "auto",
        "--output",
        "stream-json",
        "--model",
        &model,
        "Look.",
    ]);
    assert!(ran.exit_code == 0 && ran.stdout.contains("bytes omitted …]"), "{ran:?}");
}
