use super::*;
use crate::model::connect;

#[test]
fn base_urls_are_accepted_in_all_usual_forms() {
    let cases = [
        (
            "https://api.openai.com/v1",
            "/chat/completions",
            &[][..],
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "https://openrouter.ai/api/v1/",
            "/chat/completions",
            &[],
            "https://openrouter.ai/api/v1/chat/completions",
        ),
        (
            "http://localhost:8080/v1/chat/completions",
            "/chat/completions",
            &[],
            "http://localhost:8080/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:11434",
            "/chat/completions",
            &["/v1"],
            "http://127.0.0.1:11434/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:11434/v1",
            "/chat/completions",
            &["/v1"],
            "http://127.0.0.1:11434/v1/chat/completions",
        ),
        (
            "https://api.anthropic.com",
            "/messages",
            &["/v1"],
            "https://api.anthropic.com/v1/messages",
        ),
        ("https://api.openai.com/v1", "/responses", &[], "https://api.openai.com/v1/responses"),
    ];
    for (base, call, prefix, expected) in cases {
        assert_eq!(endpoint_url(base, call, prefix).expect(base).as_str(), expected);
    }
    for base in ["", "localhost:8080", "ftp://x/v1", "https://"] {
        assert!(endpoint_url(base, "/messages", &[]).is_err(), "{base}");
    }
    for base in ["localhost:8080/v1", "127.0.0.1:8080", "example.com/v1", "[::1]:8080", "box"] {
        let problem = endpoint_url(base, "/messages", &[]).expect_err(base).to_string();
        assert!(
            problem.contains(&format!("it has no scheme (write http://{base} or https://{base})")),
            "{problem}"
        );
    }
    let secret = endpoint_url("https://me:sk-secret@proxy/v1", "/messages", &[])
        .expect_err("password in the URL")
        .to_string();
    assert!(!secret.contains("sk-secret"), "{secret}");
}

fn problem(spec: &str, settings: &ModelSettings) -> String {
    connect(&spec.parse().expect("a spec"), settings)
        .map(|model| model.info().clone())
        .expect_err("a problem")
        .to_string()
}

#[test]
fn a_missing_key_or_file_is_reported() {
    let none = ModelSettings::default();
    assert_eq!(problem("openai", &none), "OpenAI requires a key\nhint: set OPENAI_API_KEY");
    assert_eq!(
        problem("anthropic", &none),
        "Anthropic requires a key\nhint: set ANTHROPIC_API_KEY"
    );
    assert!(
        problem("replay:/no/such/file", &none)
            .starts_with("cannot read the recording `/no/such/file`: ")
    );
    let bad_key =
        ModelSettings { openai_key: ApiKey::new("sk-\nsecret"), ..ModelSettings::default() };
    assert!(problem("openai", &bad_key).starts_with("invalid key in OPENAI_API_KEY"));
}

#[test]
fn r114_a_key_is_not_sent_unencrypted() {
    let mut settings = ModelSettings {
        openai_key: ApiKey::new("k"),
        base_url: Some("http://gpu.example/v1".into()),
        ..ModelSettings::default()
    };
    assert!(
        problem("openai:m", &settings)
            .starts_with("the key would be sent to gpu.example unencrypted")
    );
    settings.allow_plain_http = true;
    assert!(connect(&"openai:m".parse().expect("a spec"), &settings).is_ok());
    settings.allow_plain_http = false;
    settings.base_url = Some("http://[::1]:8000/v1".into());
    assert!(connect(&"openai:m".parse().expect("a spec"), &settings).is_ok());
}

#[test]
fn the_info_of_a_model_has_its_address_unless_it_is_the_default() {
    let address = |spec: &str, url: &str| {
        let settings = ModelSettings {
            openai_key: ApiKey::new("k"),
            anthropic_key: ApiKey::new("k"),
            base_url: Some(url.to_owned()),
            ..ModelSettings::default()
        };
        connect(&spec.parse().expect("a spec"), &settings)
            .expect("connected")
            .info()
            .address
            .clone()
    };
    let own = [
        ("openai:m", "https://api.openai.com/v1/"),
        ("anthropic:m", "https://api.anthropic.com"),
        ("ollama:m", OLLAMA_URL),
    ];
    for (spec, url) in own {
        assert_eq!(address(spec, url), None, "{url}");
    }
    assert_eq!(
        address("openai:m", " http://localhost:8000/v1").as_deref(),
        Some("http://localhost:8000/v1")
    );
    assert_eq!(
        address("anthropic:m", "https://api.openai.com/v1").as_deref(),
        Some("https://api.openai.com/v1")
    );
}

#[test]
fn an_endless_recording_is_refused() {
    let problem = problem("replay:/dev/zero", &ModelSettings::default());
    assert_eq!(problem, "cannot read the recording `/dev/zero`: it is larger than 64 MiB");
}

#[test]
fn the_info_of_a_model_has_its_context_window() {
    let settings = ModelSettings { anthropic_key: ApiKey::new("k"), ..ModelSettings::default() };
    let model =
        connect(&"claude-haiku-4-5".parse().expect("a spec"), &settings).expect("connected");
    let (provider, model_name) = ("anthropic".to_owned(), "claude-haiku-4-5".to_owned());
    let expected = ModelInfo {
        provider,
        model: model_name,
        address: None,
        context_window: 200_000,
        max_output: None,
    };
    assert_eq!(*model.info(), expected);
    let settings = ModelSettings { context_window: Some(1_234), ..settings };
    assert_eq!(
        connect(&"claude-haiku-4-5".parse().expect("a spec"), &settings)
            .expect("connected")
            .info()
            .context_window,
        1_234
    );
}
