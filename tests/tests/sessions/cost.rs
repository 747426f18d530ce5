//! What a session cost.

use cofferdam_tests::wire::{
    Provider, ScriptedReply, both_providers, call_reply, empty_reply, text_reply,
};
use serde_json::{Value, json};

use super::TestUser;

/// One request to such a model; its report.
fn run_request(
    user: &TestUser,
    provider: Provider,
    model: &str,
    replies: Vec<ScriptedReply>,
    args: &[&str],
) -> Value {
    let server = provider.serve(replies);
    let (spec, address) = (
        format!("{}:{model}", if provider == Provider::OpenAi { "openai" } else { "anthropic" }),
        server.base_url(),
    );
    let mut all =
        vec!["run", "Say it.", "--model", &spec, "--base-url", &address, "--output", "json"];
    all.extend(args);
    let mut command = user.home.command(&all);
    command.env(provider.key_variable(), server.key());
    user.home.start(command).wait_for_exit().expect_outcome("answered", 0)
}

/// Input, output and cost, of a report or of a session.
fn usage_and_cost(of: &Value) -> Value {
    json!([of["usage"]["input"], of["usage"]["output"], of["cost"]])
}

#[test]
fn r097_what_sub_agents_took_is_in_report_and_session_each_turn_at_its_own_price() {
    let user = TestUser::new();
    user.home.write_file("workspace/a.txt", "the sea\n");
    let replies = vec![
        call_reply("research_codebase", json!({"question": "What is in a?"}))
            .with_usage(Some((1_000, 10))),
        // Together they are beyond what the price of this model holds for; each alone is not.
        call_reply("read_file", json!({"path": "a.txt"}))
            .with_usage(Some((200_000, 100)))
            .only_for("in a?"),
        text_reply("The sea.").with_usage(Some((200_000, 100))).only_for("in a?"),
        text_reply("Done.").with_usage(Some((1_000, 10))),
    ];
    let report = run_request(&user, Provider::OpenAi, "gpt-6-sol", replies, &[]);
    assert_eq!(usage_and_cost(&report), json!([402_000, 220, 0.8062]));
    assert_eq!(
        usage_and_cost(&user.run_json(&["sessions", "list", "--json"])["sessions"][0]),
        usage_and_cost(&report)
    );
}

#[test]
fn r097_a_response_that_says_nothing_is_paid_for() {
    for (provider, model) in both_providers().into_iter().zip(["gpt-4.1", "claude-opus-5-5"]) {
        let user = TestUser::new();
        let replies = vec![
            empty_reply().with_thinking("Hm.").with_usage(Some((1_000_000, 0))),
            text_reply("Done.").with_usage(Some((1_000, 10))),
        ];
        let report = run_request(&user, provider, model, replies, &[]);
        assert_eq!(report["usage"]["input"], 1_001_000, "{report}");
        assert_eq!(
            usage_and_cost(&user.run_json(&["sessions", "list", "--json"])["sessions"][0]),
            usage_and_cost(&report)
        );
    }
}

#[test]
fn r097_a_session_tells_what_each_request_used_and_cost() {
    let user = TestUser::new();
    let run = |provider, model, replies, args: &[&str]| {
        run_request(&user, provider, model, replies, args)
    };
    let twice = vec![
        call_reply("submit", json!({})).with_usage(Some((1_000_000, 10_000))),
        text_reply("Said.").with_usage(Some((1_000_000, 20_000))),
    ];
    let report = run(Provider::Anthropic, "claude-opus-5-5", twice, &[]);
    assert_eq!((&report["usage"]["input"], &report["cost"]), (&json!(2_000_000), &json!(8.6)));

    run(
        Provider::OpenAi,
        "gpt-4.1",
        vec![text_reply("Again.").with_usage(Some((1_000_000, 100_000)))],
        &["--continue"],
    );
    let shown = |what: &[&str]| {
        let id = user.run_json(&["sessions", "list", "--json"])["sessions"][0]["id"]
            .as_str()
            .expect("a name")
            .to_owned();
        let ran = user.run(&[&["sessions", "show", &id], what].concat());
        assert_eq!(ran.exit_code, 0, "{ran:?}");
        ran.stdout
    };
    let text = shown(&[]);
    for line in [
        "(answered · 2000000 tokens in, 30000 out · $8.6000)",
        "(answered · 1000000 tokens in, 100000 out · $2.8000)",
        "total: 2 requests · 3 turns · 3000000 tokens in, 130000 out · $11.4000",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&shown(&["--json"])).expect("JSON");
    let brief =
        |one: &serde_json::Value| json!([one["model"], one["usage"]["output"], one["cost"]]);
    assert_eq!(brief(&json["requests"][0]), json!(["claude-opus-5-5", 30_000, 8.6]));
    assert_eq!(brief(&json["requests"][1]), json!(["gpt-4.1", 100_000, 2.8]));
    assert_eq!(brief(&json), json!([null, 130_000, 11.4]));

    // A price that is not known makes the sum unknown, and no less is said of the tokens.
    run(Provider::OpenAi, "nobody-knows", vec![text_reply("Again.")], &["--continue"]);
    let text = shown(&[]);
    assert!(text.contains("(answered · 100 tokens in, 10 out · cost unknown)"), "{text}");
    assert!(text.contains("3000100 tokens in, 130010 out · cost unknown"), "{text}");
}
