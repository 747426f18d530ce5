//! What a session cost.

use cofferdam_tests::wire::{Provider, calls, says};
use serde_json::json;

use super::User;

#[test]
fn r097_a_session_tells_what_each_request_used_and_cost() {
    let user = User::new();
    let run = |provider: Provider, model: &str, replies: Vec<_>, args: &[&str]| {
        let server = provider.serve(replies);
        let (spec, address) = (format!("{}:{model}", if provider == Provider::OpenAi { "openai" } else { "anthropic" }), server.base_url());
        let mut all = vec!["run", "Say it.", "--model", &spec, "--base-url", &address, "--output", "json"];
        all.extend(args);
        let mut command = user.home.command(&all);
        command.env(provider.key_variable(), server.key());
        user.home.start(command).wait().ended("answered", 0)
    };
    let twice = vec![calls("submit", json!({})).usage(Some((1_000_000, 10_000))), says("Said.").usage(Some((1_000_000, 20_000)))];
    let report = run(Provider::Anthropic, "claude-haiku-4-5", twice, &[]);
    assert_eq!((&report["usage"]["input"], &report["cost"]), (&json!(2_000_000), &json!(2.15)));

    run(Provider::OpenAi, "gpt-4o", vec![says("Again.").usage(Some((1_000_000, 100_000)))], &["--continue"]);
    let shown = |what: &[&str]| {
        let id = user.json(&["sessions", "list", "--json"])["sessions"][0]["id"].as_str().expect("a name").to_owned();
        let ran = user.run(&[&["sessions", "show", &id], what].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout
    };
    let text = shown(&[]);
    for line in [
        "(answered · 2000000 tokens in, 30000 out · $2.1500)",
        "(answered · 1000000 tokens in, 100000 out · $3.5000)",
        "in all: 2 requests · 3 turns · 3000000 tokens in, 130000 out · $5.6500",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&shown(&["--json"])).expect("JSON");
    let brief = |one: &serde_json::Value| json!([one["model"], one["usage"]["output"], one["cost"]]);
    assert_eq!(brief(&json["requests"][0]), json!(["claude-haiku-4-5", 30_000, 2.15]));
    assert_eq!(brief(&json["requests"][1]), json!(["gpt-4o", 100_000, 3.5]));
    assert_eq!(brief(&json), json!([null, 130_000, 5.65]));

    // A price that is not known makes the sum unknown, and no less is said of the tokens.
    run(Provider::OpenAi, "nobody-knows", vec![says("Again.")], &["--continue"]);
    let text = shown(&[]);
    assert!(text.contains("(answered · 100 tokens in, 10 out · cost unknown)"), "{text}");
    assert!(text.contains("3000100 tokens in, 130010 out · cost unknown"), "{text}");
}
