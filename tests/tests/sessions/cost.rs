//! What a session cost.

use cofferdam_tests::wire::{Provider, Reply, both, calls, nothing, says};
use serde_json::{Value, json};

use super::User;

/// One request to such a model; its report.
fn run(user: &User, provider: Provider, model: &str, replies: Vec<Reply>, args: &[&str]) -> Value {
    let server = provider.serve(replies);
    let (spec, address) = (format!("{}:{model}", if provider == Provider::OpenAi { "openai" } else { "anthropic" }), server.base_url());
    let mut all = vec!["run", "Say it.", "--model", &spec, "--base-url", &address, "--output", "json"];
    all.extend(args);
    let mut command = user.home.command(&all);
    command.env(provider.key_variable(), server.key());
    user.home.start(command).wait().ended("answered", 0)
}

/// Input, output and cost, of a report or of a session.
fn paid(of: &Value) -> Value {
    json!([of["usage"]["input"], of["usage"]["output"], of["cost"]])
}

#[test]
fn r097_what_sub_agents_took_is_in_report_and_session_each_turn_at_its_own_price() {
    let user = User::new();
    user.home.write("workspace/a.txt", "the sea\n");
    let replies = vec![
        calls("research_codebase", json!({"question": "What is in a?"})).usage(Some((1_000, 10))),
        // Together they are beyond what the price of this model holds for; each alone is not.
        calls("read_file", json!({"path": "a.txt"})).usage(Some((200_000, 100))).to("in a?"),
        says("The sea.").usage(Some((200_000, 100))).to("in a?"),
        says("Done.").usage(Some((1_000, 10))),
    ];
    let report = run(&user, Provider::OpenAi, "gpt-6-sol", replies, &[]);
    assert_eq!(paid(&report), json!([402_000, 220, 0.8062]));
    assert_eq!(paid(&user.json(&["sessions", "list", "--json"])["sessions"][0]), paid(&report));
}

#[test]
fn r097_a_response_that_says_nothing_is_paid_for() {
    for (provider, model) in both().into_iter().zip(["gpt-4.1", "claude-opus-5-5"]) {
        let user = User::new();
        let replies = vec![nothing().thinks("Hm.").usage(Some((1_000_000, 0))), says("Done.").usage(Some((1_000, 10)))];
        let report = run(&user, provider, model, replies, &[]);
        assert_eq!(report["usage"]["input"], 1_001_000, "{report}");
        assert_eq!(paid(&user.json(&["sessions", "list", "--json"])["sessions"][0]), paid(&report));
    }
}

#[test]
fn r097_a_session_tells_what_each_request_used_and_cost() {
    let user = User::new();
    let run = |provider, model, replies, args: &[&str]| run(&user, provider, model, replies, args);
    let twice = vec![calls("submit", json!({})).usage(Some((1_000_000, 10_000))), says("Said.").usage(Some((1_000_000, 20_000)))];
    let report = run(Provider::Anthropic, "claude-opus-5-5", twice, &[]);
    assert_eq!((&report["usage"]["input"], &report["cost"]), (&json!(2_000_000), &json!(8.6)));

    run(Provider::OpenAi, "gpt-4.1", vec![says("Again.").usage(Some((1_000_000, 100_000)))], &["--continue"]);
    let shown = |what: &[&str]| {
        let id = user.json(&["sessions", "list", "--json"])["sessions"][0]["id"].as_str().expect("a name").to_owned();
        let ran = user.run(&[&["sessions", "show", &id], what].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout
    };
    let text = shown(&[]);
    for line in [
        "(answered · 2000000 tokens in, 30000 out · $8.6000)",
        "(answered · 1000000 tokens in, 100000 out · $2.8000)",
        "in all: 2 requests · 3 turns · 3000000 tokens in, 130000 out · $11.4000",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&shown(&["--json"])).expect("JSON");
    let brief = |one: &serde_json::Value| json!([one["model"], one["usage"]["output"], one["cost"]]);
    assert_eq!(brief(&json["requests"][0]), json!(["claude-opus-5-5", 30_000, 8.6]));
    assert_eq!(brief(&json["requests"][1]), json!(["gpt-4.1", 100_000, 2.8]));
    assert_eq!(brief(&json), json!([null, 130_000, 11.4]));

    // A price that is not known makes the sum unknown, and no less is said of the tokens.
    run(Provider::OpenAi, "nobody-knows", vec![says("Again.")], &["--continue"]);
    let text = shown(&[]);
    assert!(text.contains("(answered · 100 tokens in, 10 out · cost unknown)"), "{text}");
    assert!(text.contains("3000100 tokens in, 130010 out · cost unknown"), "{text}");
}
