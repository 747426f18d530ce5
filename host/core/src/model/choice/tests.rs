use super::*;
use crate::model::test_server::{RawAnswer, ScriptedModelServer};

#[test]
fn models_are_named_with_or_without_provider() {
    let cases = [
        ("openai:gpt-4.1", "openai:gpt-4.1"),
        ("gpt-4.1", "openai:gpt-4.1"),
        ("o4-mini", "openai:o4-mini"),
        ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("anthropic", "anthropic:claude-sonnet-5-5"),
        (" openai: ", "openai:gpt-6-sol"),
        ("openai:meta-llama/llama-4:free", "openai:meta-llama/llama-4:free"),
        ("ollama:qwen3:8b", "ollama:qwen3:8b"),
        ("replay:a/b.jsonl", "replay:a/b.jsonl"),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<ModelSpec>().expect(text).to_string(), expected);
    }
    let unknown = "llama3:8b".parse::<ModelSpec>().expect_err("no provider").to_string();
    assert!(unknown.contains("ollama:llama3:8b"), "{unknown}");
    assert_eq!(
        "ollama".parse::<ModelSpec>().expect_err("no model named").to_string(),
        "no model is selected for ollama\nhint: write ollama:NAME"
    );
}

fn settings(pairs: &[(&str, &str)]) -> ModelSettings {
    ModelSettings::from_env(|name| {
        pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

#[tokio::test]
async fn the_configured_key_chooses_the_provider() {
    let nobody = "http://127.0.0.1:1";
    let openai =
        choose_with(None, &settings(&[("OPENAI_API_KEY", "k")]), nobody).await.expect("a choice");
    assert_eq!((openai.spec.to_string().as_str(), openai.notice), ("openai:gpt-6-sol", None));
    let both = settings(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]);
    let both = choose_with(None, &both, nobody).await.expect("a choice");
    assert!(both.notice.is_some_and(|remark| remark.contains("both set; using anthropic:")));
    let blank = settings(&[("OPENAI_API_KEY", " ")]);
    let nothing =
        choose_with(None, &blank, nobody).await.expect_err("no model available").to_string();
    for way in
        ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ollama", "COFFERDAM_BASE_URL", "cofferdam demo"]
    {
        assert!(nothing.contains(way), "{nothing}");
    }
}

#[tokio::test]
async fn without_a_key_the_local_server_is_used() {
    let tags = r#"{"models": [{"name": "llama3.1:8b"}]}"#;
    let server = ScriptedModelServer::start(vec![RawAnswer::new(
        "200 OK",
        &[("content-type", "application/json")],
        tags,
    )])
    .await;
    let choice =
        choose_with(None, &ModelSettings::default(), &server.url()).await.expect("a choice");
    assert_eq!(choice.spec.to_string(), "ollama:llama3.1:8b");
}

#[tokio::test]
async fn r114_an_address_alone_gets_no_key() {
    let mut settings =
        settings(&[("ANTHROPIC_API_KEY", "k"), ("COFFERDAM_BASE_URL", "http://127.0.0.1:1/v1")]);
    let alone = choose(None, &settings).await.expect_err("no model for the address").to_string();
    assert!(
        alone.starts_with("a base URL is set (http://127.0.0.1:1/v1), but no model is selected"),
        "{alone}"
    );
    let tags = r#"{"models": [{"name": "llama3.1:8b"}]}"#;
    let server = ScriptedModelServer::start(vec![RawAnswer::new(
        "200 OK",
        &[("content-type", "application/json")],
        tags,
    )])
    .await;
    settings.base_url = Some(server.url() + "/v1");
    assert_eq!(
        choose(None, &settings).await.expect("a choice").spec.to_string(),
        "ollama:llama3.1:8b"
    );
    let request = &server.requests()[0].head;
    assert!(!request.contains("authorization") && !request.contains("api-key"), "{request}");
}

#[test]
fn r114_settings_do_not_print_keys() {
    let settings = settings(&[("OPENAI_API_KEY", "sk-secret"), ("ANTHROPIC_API_KEY", "sk-other")]);
    let printed = format!("{settings:?}");
    assert!(!printed.contains("sk-"), "{printed}");
    assert_eq!(settings.secrets().len(), 2);
}
