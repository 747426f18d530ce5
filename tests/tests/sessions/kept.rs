//! What calls leave to later ones goes on with the session: what tools keep, and which files the model has read.

use serde_json::{Value, json};

use cofferdam_tests::program::wait_until;

use super::{User, bash};

fn call(tool: &str, arguments: Value) -> Value {
    json!({"call": {"id": "c", "name": tool, "arguments": arguments}})
}

/// The results of the newest request, in order.
fn results(user: &User) -> Vec<String> {
    let transcript = user.transcript();
    let newest = transcript.exchanges().last().expect("there is a request");
    newest.turns().iter().flat_map(|turn| turn.calls()).map(|answered| answered.result.text().trim().to_owned()).collect()
}

const LIST: &str = "0 of 1 done:\n[>] Mend";

fn list() -> Value {
    call("todo", json!({"items": [{"text": "Mend", "status": "in_progress"}]}))
}

#[test]
fn r125_r126b_the_list_and_the_scratchpad_go_on_with_the_session() {
    let user = User::new();
    let think = call("react", json!({"action": "think", "text": "First."}));
    let first = user.model("first.jsonl", &[json!([list(), think]), json!([{"text": "Noted."}])]);
    user.json(&["run", "--output", "json", "--model", &first, "Note it."]);
    let (show, get) = (call("todo", json!({})), call("react", json!({"action": "get"})));
    let second = user.model("second.jsonl", &[json!([show, get]), json!([{"text": "Seen."}])]);
    user.json(&["run", "--continue", "--output", "json", "--model", &second, "Show it."]);
    assert_eq!(results(&user), [LIST, "1. thought: First."]);
    // What was deleted is not there again.
    let clear = user.model("clear.jsonl", &[json!([call("react", json!({"action": "clear"}))]), json!([{"text": "Cleared."}])]);
    user.json(&["run", "--continue", "--output", "json", "--model", &clear, "Clear it."]);
    user.json(&["run", "--continue", "--output", "json", "--model", &second, "Show it again."]);
    let [todo, pad] = &results(&user)[..] else { panic!("{:?}", results(&user)) };
    assert!(todo == LIST && !pad.contains("First."), "{pad}");
}

#[test]
fn another_session_knows_nothing_of_it() {
    let user = User::new();
    let first = user.model("first.jsonl", &[json!([list()]), json!([{"text": "Noted."}])]);
    user.json(&["run", "--output", "json", "--model", &first, "Note it."]);
    let second = user.model("second.jsonl", &[json!([call("todo", json!({}))]), json!([{"text": "Seen."}])]);
    let ran = user.run(&["run", "--output", "stream-json", "--model", &second, "Show it."]);
    assert!(ran.code == 0 && !ran.stdout.contains("Mend"), "{ran:?}");
}

#[test]
fn r108_what_was_kept_before_a_crash_is_kept_with_the_result_of_its_call() {
    let user = User::new();
    let model = user.model("long.jsonl", &[json!([list()]), json!([bash("touch begun; sleep 60")])]);
    let running = user.home.start(user.home.command(&["run", "--mode", "auto", "--model", &model, "Work."]));
    wait_until("the second call runs", || user.home.has("begun"));
    // SIGKILL.
    drop(running);
    let second = user.model("second.jsonl", &[json!([call("todo", json!({}))]), json!([{"text": "Seen."}])]);
    user.json(&["run", "--continue", "--output", "json", "--model", &second, "Show it."]);
    assert_eq!(results(&user), [LIST]);
}

#[test]
fn r119_a_file_that_changed_between_two_requests_is_read_again_first() {
    let user = User::new();
    let file = user.home.workspace().join("a.txt");
    std::fs::write(&file, "one\ntwo\n").expect("it can be written");
    let read = || json!([call("read_file", json!({"path": "a.txt"}))]);
    let update = || json!([call("update_file", json!({"path": "a.txt", "old_text": "two", "new_text": "three"}))]);
    let first = user.model("first.jsonl", &[read(), json!([{"text": "Read."}])]);
    user.json(&["run", "--output", "json", "--model", &first, "Read it."]);
    std::fs::write(&file, "zero\none\ntwo\n").expect("it can be written");
    let second = user.model("second.jsonl", &[update(), read(), update(), json!([{"text": "Done."}])]);
    user.json(&["run", "--continue", "--mode", "auto", "--output", "json", "--model", &second, "Change it."]);
    let results = results(&user);
    assert!(results[0].contains("has changed on disk since it was last read") && results[0].contains("Read it again"), "{results:?}");
    assert!(results[2].starts_with("updated a.txt at line 3"), "{results:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "zero\none\nthree\n");
}

#[test]
fn r095_r114_a_whole_output_is_kept_with_its_session_without_keys_and_goes_with_it() {
    const KEY: &str = "sk-ant-a-key-of-this-user";
    let user = User::new();
    std::fs::write(user.home.workspace().join("notes.txt"), format!("{KEY}\n")).expect("it can be written");
    let model = user.model("long.jsonl", &[json!([bash("cat notes.txt; yes | head -c 300000")]), json!([{"text": "Seen."}])]);
    let mut command = user.home.command(&["run", "--mode", "auto", "--output", "json", "--model", &model, "Look."]);
    command.env("ANTHROPIC_API_KEY", KEY);
    assert_eq!(user.home.start(command).wait().code, 0);

    let result = results(&user).pop().expect("there is one");
    let path = result.split(" is in ").nth(1).and_then(|rest| rest.split(" …]").next()).expect("the marker names a file").to_owned();
    let journal = user.journals().into_iter().find(|path| path.is_file()).expect("there is one");
    assert!(path.starts_with(journal.with_extension("").to_str().expect("text")), "{path} is of {}", journal.display());
    let whole = std::fs::read_to_string(&path).expect("it is there");
    assert!(whole.len() > 290_000 && whole.starts_with("[key redacted]") && !whole.contains(KEY), "{}", &whole[..100]);
    // It is there as long as the session is.
    let answer = user.answer("Again.");
    user.json(&["run", "--continue", "--output", "json", "--model", &answer, "Again."]);
    assert!(std::fs::exists(&path).expect("readable"));
    let id = journal.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
    let refused = user.run(&["sessions", "delete", &id]);
    assert!(refused.code == 1 && refused.stderr.contains("use --yes") && journal.exists(), "{refused:?}");
    assert_eq!(user.run(&["sessions", "delete", &id, "--yes"]).code, 0);
    assert_eq!(user.journals(), Vec::<std::path::PathBuf>::new(), "nothing is left of it");
}

#[test]
fn a_request_that_is_not_recorded_keeps_no_output() {
    let user = User::new();
    let model = user.model("long.jsonl", &[json!([bash("yes | head -c 300000")]), json!([{"text": "Seen."}])]);
    let ran = user.run(&["run", "--no-session", "--mode", "auto", "--output", "stream-json", "--model", &model, "Look."]);
    assert!(ran.code == 0 && ran.stdout.contains("bytes left out …]"), "{ran:?}");
}
