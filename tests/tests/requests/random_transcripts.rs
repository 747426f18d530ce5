//! Whatever a file holds in place of a conversation: once it is read, both providers accept it, and
//! no word is missing.

use cofferdam::agent::ports::{ModelRequest, ToolChoice, ToolDefinition};
use cofferdam::conversation::{Transcript, validate};
use cofferdam::model::{ApiKey, ModelSettings, ModelSpec, connect};
use cofferdam_tests::wire::{Provider, ProviderServer, both_providers, text_reply};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A word of its own, nothing, or something that has to be quoted.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" \n".to_owned()),
        "[a-z]{8}",
        "[a-z]{6}[\"\\\\🦀\n][a-z]{2}"
    ]
}

fn calls() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["", "a", "a", "b", "functions.read:0", "🦀"]);
    let name = prop::sample::select(vec!["read", "", "no such tool", "functions.read"]);
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just("{\"a\":".to_owned()),
        Just("[1]".to_owned()),
        texts()
    ];
    let status = prop::sample::select(vec!["ok", "error", "rejected", "not_run", "interrupted"]);
    let picture = json!({"image": {"media_type": "", "base64": "iVBORw0KGgoAAAA="}});
    let content = prop_oneof![texts().prop_map(|text| json!({"text": text})), Just(picture)];
    (id, name, arguments, status, prop::collection::vec(content, 0..3)).prop_map(
        |(id, name, arguments, status, content)| {
            let call = json!({"id": id, "name": name, "arguments": arguments});
            json!({"call": {"call": call, "result": {"status": status, "content": content}}})
        },
    )
}

fn conversations() -> impl Strategy<Value = Value> {
    let thought =
        texts().prop_map(|text| json!({"reasoning": {"text": {"text": text, "signature": "s"}}}));
    let block =
        prop_oneof![texts().prop_map(|text| json!({"text": text})), thought, calls(), calls()];
    let turn = prop::collection::vec(block, 0..4).prop_map(|blocks| json!({"blocks": blocks}));
    let exchange = (texts(), prop::collection::vec(turn, 0..4))
        .prop_map(|(prompt, turns)| json!({"prompt": prompt, "turns": turns}));
    let place = (0_usize..5, 0_usize..4)
        .prop_map(|(exchange, turn)| json!({"exchange": exchange, "turn": turn}));
    let summary = prop::option::of(
        place.prop_map(|until| json!({"text": "Sum.", "until": until, "turns": 1, "tokens": 9})),
    );
    (prop::collection::vec(exchange, 0..5), summary)
        .prop_map(|(exchanges, summary)| json!({"exchanges": exchanges, "summary": summary}))
}

/// Sends a conversation to a provider that judges it.
fn send(provider: Provider, transcript: &Transcript) -> ProviderServer {
    let server = provider.serve([text_reply("Good.")]);
    let key = ApiKey::new(server.key());
    let mut settings = ModelSettings::default();
    settings.base_url = Some(server.base_url());
    settings.openai_key = key.clone();
    settings.anthropic_key = key;
    let spec: ModelSpec = provider.model().parse().expect("it is a model");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tools = [ToolDefinition {
        name: "read".into(),
        description: "Reads.".into(),
        input_schema: json!({"type": "object"}),
    }];
    let heard = runtime.block_on(async {
        let model = connect(&spec, &settings).expect("it can be reached");
        let request = ModelRequest {
            system: "You are tested.",
            conversation: transcript.sent(),
            note: None,
            tools: &tools,
            tool_choice: ToolChoice::Auto,
            is_shown_live: false,
        };
        model
            .respond(request, &mut |_| {}, &CancellationToken::new())
            .await
            .map(|response| response.text())
    });
    assert_eq!(heard.as_deref(), Ok("Good."));
    server
}

/// All texts of prompts, turns and results that are not blank.
fn all_texts(found: &Value) -> Vec<String> {
    let mut words = Vec::new();
    for exchange in found["exchanges"].as_array().into_iter().flatten() {
        words.extend(exchange["prompt"].as_str().map(str::to_owned));
        for block in exchange["turns"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|turn| turn["blocks"].as_array())
            .flatten()
        {
            words.extend(block["text"].as_str().map(str::to_owned));
            let content = block["call"]["result"]["content"].as_array().into_iter().flatten();
            words.extend(content.filter_map(|piece| piece["text"].as_str()).map(str::to_owned));
        }
    }
    words.retain(|word| !word.trim().is_empty());
    words
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn r058_whatever_is_found_is_mended_into_what_both_providers_accept_and_nothing_is_lost(
        found in conversations(),
    ) {
        let mut transcript: Transcript =
            serde_json::from_value(found.clone()).expect("it is mended");
        transcript.begin_exchange("And now?");
        prop_assert_eq!(validate(&transcript), Ok(()));
        for provider in both_providers() {
            let server = send(provider, &transcript);
            if transcript.summary().is_none() {
                let request = server.request();
                for word in all_texts(&found) {
                    prop_assert!(
                        request.count_occurrences(&word) > 0,
                        "{:?} is missing for {:?}",
                        word,
                        provider
                    );
                }
            }
        }
    }
}
