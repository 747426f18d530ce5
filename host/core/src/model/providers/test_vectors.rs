//! Tests with streams from the official SDKs (`tests/vectors`).
//!
//! The decoders must produce the same results as the SDKs, wherever the bytes are split.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::fuzzing::{StreamFormat, decode_stream};
use crate::conversation::{ModelReasoning, ModelResponse, ResponseBlock, StopReason};

/// A stream with the result of the SDK.
struct TestVector {
    name: String,
    stream: String,
    expected: Value,
}

fn load_vectors(provider: &str) -> Vec<TestVector> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors").join(provider);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("temporary directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sse"));
    paths.sort();
    assert!(!paths.is_empty(), "there are no streams of {provider}");
    let read = |path: &Path| std::fs::read_to_string(path).expect("readable");
    let vector = |path: PathBuf| TestVector {
        name: path.display().to_string(),
        stream: read(&path),
        expected: serde_json::from_str(&read(&path.with_extension("json"))).expect("JSON"),
    };
    paths.into_iter().map(vector).collect()
}

fn decode_anthropic(pieces: &[&[u8]]) -> Result<ModelResponse, String> {
    decode_stream(StreamFormat::Anthropic, pieces)
}

fn decode_openai(pieces: &[&[u8]]) -> Result<ModelResponse, String> {
    decode_stream(StreamFormat::OpenAi, pieces)
}

fn decode_responses(pieces: &[&[u8]]) -> Result<ModelResponse, String> {
    decode_stream(StreamFormat::Responses, pieces)
}

/// Returns streams of the Responses API from the fuzz corpus, because its SDK has no such tests.
fn responses_vectors() -> Vec<TestVector> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus/stream");
    let vector = |name: &&str| {
        let bytes = std::fs::read(directory.join(name)).expect("readable");
        let stream = String::from_utf8(bytes[5..].to_vec()).expect("text");
        TestVector { name: (*name).to_owned(), stream, expected: Value::Null }
    };
    [
        "responses-numbered",
        "responses-named",
        "responses-listed",
        "responses-cut",
        "responses-failed",
    ]
    .iter()
    .map(vector)
    .collect()
}

/// Adds the blank line after the last event, which several files lack.
fn with_blank_line(stream: &str) -> String {
    format!("{}\n\n", stream.trim_end())
}

/// Encodes a response in Anthropic's format, as far as the host keeps it.
fn to_anthropic_json(response: &ModelResponse) -> Value {
    let block = |block: &ResponseBlock| match block {
        ResponseBlock::Text(text) => json!({"type": "text", "text": text}),
        ResponseBlock::Reasoning(ModelReasoning::Text { text, signature }) => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        ResponseBlock::Reasoning(ModelReasoning::Opaque { data }) => {
            json!({"type": "redacted_thinking", "data": data})
        }
        ResponseBlock::Reasoning(ModelReasoning::Sealed { .. }) => {
            json!({"type": "of another provider"})
        }
        ResponseBlock::Call(call) => {
            json!({
                "type": "tool_use", "id": call.id, "name": call.name, "arguments": call.arguments,
            })
        }
    };
    let stop = match response.stop {
        StopReason::End => "end_turn",
        StopReason::Calls => "tool_use",
        StopReason::Length => "max_tokens",
        StopReason::Refused => "refusal",
        StopReason::Interrupted | StopReason::Other(_) => "other",
    };
    let blocks: Vec<Value> = response.blocks.iter().map(block).collect();
    json!({
        "content": blocks, "stop_reason": stop, "input": response.usage.input,
        "output": response.usage.output,
    })
}

/// Encodes the result of the SDK in the same way.
///
/// Blocks of server-side tools and blank text are omitted, because the host does not keep them.
fn expected_json(expected: &Value) -> Value {
    let ours = |(block, arguments): (&Value, &Value)| match block["type"].as_str().expect("a type")
    {
        "text" if block["text"] == "" => None,
        "text" => Some(json!({"type": "text", "text": block["text"]})),
        "thinking" => Some(json!({
            "type": "thinking", "thinking": block["thinking"], "signature": block["signature"],
        })),
        "tool_use" => Some(json!({
            "type": "tool_use", "id": block["id"], "name": block["name"],
            "arguments": arguments,
        })),
        _ => None,
    };
    let list = |key: &str| expected[key].as_array().expect("a list");
    let blocks: Vec<Value> =
        list("content").iter().zip(list("arguments")).filter_map(ours).collect();
    let usage = |key: &str| expected["usage"][key].as_u64();
    let parts = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let input: u64 = parts.into_iter().filter_map(usage).sum();
    json!({
        "content": blocks, "stop_reason": expected["stop_reason"], "input": input,
        "output": usage("output_tokens"),
    })
}

#[test]
fn r081_the_streams_of_anthropics_own_tests_give_the_same_messages() {
    let vectors = load_vectors("anthropic");
    assert!(vectors.len() >= 19, "some are missing");
    for TestVector { name, stream, expected } in &vectors {
        let response = decode_anthropic(&[with_blank_line(stream).as_bytes()])
            .unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        if expected["error"].is_null() {
            assert_eq!(to_anthropic_json(&response), expected_json(expected), "{name}");
        } else {
            // The SDK fails here. The host keeps the call and answers it with an error (R-22).
            let calls: Vec<&str> = response.calls().map(|call| call.arguments.as_str()).collect();
            assert_eq!(json!(calls), expected["arguments"], "{name}");
            assert!(
                calls.iter().all(|arguments| serde_json::from_str::<Value>(arguments).is_err()),
                "{name}"
            );
        }
        for (block, arguments) in expected["content"]
            .as_array()
            .into_iter()
            .flatten()
            .zip(expected["arguments"].as_array().expect("a list"))
        {
            if block["type"] == "tool_use" && expected["stop_reason"] != "max_tokens" {
                let ours: Value =
                    serde_json::from_str(arguments.as_str().expect("text")).expect("JSON");
                assert_eq!(ours, block["input"], "{name}");
            }
        }
    }
}

#[test]
fn r082_the_streams_of_openais_own_tests_give_the_same_calls() {
    let vectors = load_vectors("openai");
    assert!(vectors.len() >= 5, "some are missing");
    for TestVector { name, stream, expected } in &vectors {
        let response = decode_openai(&[stream.as_bytes()])
            .unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        let calls: Vec<_> = response
            .calls()
            .map(|call| (json!(call.id), json!(call.name), json!(call.arguments)))
            .collect();
        let theirs: Vec<_> = expected["message"]["tool_calls"]
            .as_array()
            .expect("calls")
            .iter()
            .map(|call| {
                (
                    call["id"].clone(),
                    call["function"]["name"].clone(),
                    call["function"]["arguments"].clone(),
                )
            })
            .collect();
        assert_eq!(
            (calls, &response.stop, response.text()),
            (theirs, &StopReason::Calls, String::new()),
            "{name}"
        );
    }
}

#[test]
fn r082_a_stream_of_responses_gives_each_call_once() {
    for (TestVector { name, stream, .. }, calls) in responses_vectors().iter().zip([2, 1, 1, 1]) {
        let response = decode_responses(&[stream.as_bytes()])
            .unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!(response.calls().count(), calls, "{name}");
    }
}

#[test]
fn r083_without_its_last_event_no_stream_is_a_response() {
    for TestVector { name, stream, .. } in load_vectors("anthropic") {
        let end = stream.rfind("event: message_stop").expect("has an end");
        assert!(decode_anthropic(&[&stream.as_bytes()[..end]]).is_err(), "{name}");
    }
    for TestVector { name, stream, .. } in load_vectors("openai") {
        let end = stream.rfind("\n\ndata: {").expect("has an end");
        assert!(
            decode_openai(&[format!("{}\n\ndata: [DONE]\n\n", &stream[..end]).as_bytes()]).is_err(),
            "{name}"
        );
    }
    for TestVector { name, stream, .. } in responses_vectors() {
        let end = stream.rfind("event: response.").expect("has an end");
        assert!(decode_responses(&[&stream.as_bytes()[..end]]).is_err(), "{name}");
    }
}

/// Splits bytes at these positions.
fn split_at<'a>(bytes: &'a [u8], at: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> =
        at.iter().map(|endpoint| endpoint.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn r088_streams_can_be_split_anywhere(
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ending in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let adapters = [
            (load_vectors("anthropic"), decode_anthropic as fn(&[&[u8]]) -> _),
            (load_vectors("openai"), decode_openai),
            (responses_vectors(), decode_responses),
        ];
        for (vectors, adapter) in adapters {
            for TestVector { name, stream, .. } in vectors {
                let stream = with_blank_line(&stream);
                let expected = adapter(&[stream.as_bytes()]);
                let stream = stream.replace('\n', ending);
                prop_assert_eq!(
                    adapter(&split_at(stream.as_bytes(), &places)), expected, "{}", name
                );
            }
        }
    }
}
