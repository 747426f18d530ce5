//! What the official SDKs hold for a request: closed schemas of their own types, made by
//! `tests/schemas/generate.py`.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use super::Provider;

/// Longer quotations of a body do not help.
const MAX_QUOTED: usize = 300;

/// Everything in a body that the SDK's types do not allow.
pub fn schema_errors(provider: Provider, body: &Value) -> Vec<String> {
    let in_words = |error: jsonschema::ValidationError<'_>| {
        let quoted: String = error.to_string().chars().take(MAX_QUOTED).collect();
        format!("the SDK's types do not allow {}: {quoted}", error.instance_path())
    };
    schema(provider).iter_errors(body).map(in_words).collect()
}

fn schema(provider: Provider) -> &'static Validator {
    static OPENAI: OnceLock<Validator> = OnceLock::new();
    static ANTHROPIC: OnceLock<Validator> = OnceLock::new();
    static RESPONSES: OnceLock<Validator> = OnceLock::new();
    let (cell, text) = match provider {
        Provider::OpenAi => (&OPENAI, include_str!("../../schemas/openai.json")),
        Provider::Anthropic => (&ANTHROPIC, include_str!("../../schemas/anthropic.json")),
        Provider::Responses => (&RESPONSES, include_str!("../../schemas/openai-responses.json")),
    };
    cell.get_or_init(|| {
        let schema = serde_json::from_str(text).expect("the schema is JSON");
        jsonschema::validator_for(&schema).expect("it is a schema")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good(provider: Provider) -> Value {
        let parameters = json!({
            "type": "object", "properties": {"path": {"type": "string"}},
            "additionalProperties": false,
        });
        match provider {
            Provider::OpenAi => json!({
                "model": "m", "stream": true, "stream_options": {"include_usage": true},
                "max_tokens": 9, "tool_choice": "none",
                "tools": [{"type": "function", "function": {
                    "name": "read_file", "description": "d", "parameters": parameters,
                }}],
                "messages": [
                    {"role": "system", "content": "s"},
                    {"role": "user", "content": [
                        {"type": "text", "text": "u"},
                        {"type": "image_url", "image_url": {"url": "data:,"}},
                    ]},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "a", "type": "function", "function": {
                            "name": "read_file", "arguments": "{}",
                        }},
                    ]},
                    {"role": "tool", "tool_call_id": "a", "content": "1"},
                ],
            }),
            Provider::Anthropic => json!({
                "model": "m", "stream": true, "max_tokens": 9, "tool_choice": {"type": "none"},
                "thinking": {"type": "adaptive", "display": "summarized"},
                "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
                "tools": [{
                    "name": "read_file", "description": "d", "input_schema": parameters,
                    "cache_control": {"type": "ephemeral"},
                }],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "u"}]},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "t", "signature": "s"},
                        {"type": "redacted_thinking", "data": "d"},
                        {
                            "type": "tool_use", "id": "a", "name": "read_file",
                            "input": {"path": "a"},
                        },
                    ]},
                    {"role": "user", "content": [{
                        "type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [
                            {"type": "text", "text": "1"},
                            {"type": "image", "source": {
                                "type": "base64", "media_type": "image/png", "data": "AAAA",
                            }},
                        ],
                    }]},
                ],
            }),
            Provider::Responses => good_for_responses(),
        }
    }

    fn good_for_responses() -> Value {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        json!({
            "model": "m", "stream": true, "store": false, "instructions": "s",
            "max_output_tokens": 9, "tool_choice": "none",
            "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "high"},
            "tools": [{
                "type": "function", "name": "read_file", "description": "d",
                "parameters": parameters, "strict": false,
            }],
            "input": [
                {"role": "user", "content": "u"},
                {
                    "type": "reasoning", "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "e",
                },
                {
                    "type": "message", "role": "assistant", "content": "I look.",
                    "phase": "commentary",
                },
                {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": [
                    {"type": "input_text", "text": "1"},
                    {"type": "input_image", "image_url": "data:,"},
                ]},
            ],
        })
    }

    /// A place in a body, and what is put there; `None` takes out what is there.
    type Break = (&'static str, Option<Value>);

    fn broken(provider: Provider, (place, value): Break) -> Value {
        let mut body = good(provider);
        let (parent, key) = place.rsplit_once('/').expect("a pointer");
        match body.pointer_mut(parent).unwrap_or_else(|| panic!("nothing is at {parent}")) {
            Value::Object(map) => drop(match value {
                Some(value) => map.insert(key.to_owned(), value),
                None => map.remove(key),
            }),
            Value::Array(list) => {
                list[key.parse::<usize>().expect("an index")] = value.expect("a value")
            }
            other => panic!("{other} has no places"),
        }
        assert_ne!(body, good(provider), "{place}: nothing is broken");
        body
    }

    #[test]
    fn r060_bodies_as_the_sdks_send_them_are_fine() {
        for provider in super::super::all_providers() {
            assert_eq!(schema_errors(provider, &good(provider)), [""; 0]);
        }
    }

    #[test]
    fn r060_unknown_keys_wrong_nesting_and_missing_fields_are_found() {
        let openai = [
            // Keys that nobody knows, at each level.
            ("/extra_body", Some(json!({}))),
            ("/thinking", Some(json!({"type": "adaptive"}))),
            ("/stream_options/usage", Some(json!(true))),
            ("/messages/1/tool_calls", Some(json!([]))),
            ("/messages/1/content/0/cache_control", Some(json!({"type": "ephemeral"}))),
            ("/messages/2/reasoning_content", Some(json!("t"))),
            ("/messages/2/tool_calls/0/index", Some(json!(0))),
            ("/messages/3/is_error", Some(json!(true))),
            ("/tools/0/name", Some(json!("read_file"))),
            ("/tools/0/function/input_schema", Some(json!({}))),
            // Things in the wrong place or of the wrong type.
            ("/messages/0/content", Some(Value::Null)),
            ("/messages/1/content/1/image_url", Some(json!("data:,"))),
            ("/messages/2/tool_calls/0/function/arguments", Some(json!({}))),
            ("/tools/0", Some(json!({"name": "read_file", "parameters": {}}))),
            ("/tool_choice", Some(json!({"type": "none"}))),
            ("/stream", Some(json!(false))),
            // What may not be missing.
            ("/model", None),
            ("/messages", None),
            ("/messages/2/tool_calls/0/id", None),
            ("/messages/3/tool_call_id", None),
            ("/tools/0/function/name", None),
        ];
        let anthropic = [
            ("/extra_body", Some(json!({}))),
            ("/stream_options", Some(json!({"include_usage": true}))),
            ("/system/0/role", Some(json!("system"))),
            ("/messages/0/content/0/id", Some(json!("a"))),
            ("/messages/1/content/2/arguments", Some(json!("{}"))),
            ("/messages/1/content/2/caller", Some(Value::Null)),
            ("/messages/2/content/0/status", Some(json!("ok"))),
            ("/tools/0/parameters", Some(json!({}))),
            ("/tools/0/cache_control/ttl", Some(json!("2h"))),
            ("/thinking/budget", Some(json!(1))),
            ("/messages/1/content/2/input", Some(json!("{}"))),
            ("/messages/2/content/0/content", Some(json!({"type": "text", "text": "1"}))),
            ("/messages/2/content/0/content/1/source", Some(json!("data:,"))),
            ("/messages/2/role", Some(json!("tool"))),
            ("/tools/0", Some(json!({"type": "function", "function": {"name": "read_file"}}))),
            ("/tool_choice", Some(json!("none"))),
            ("/stream", Some(json!(false))),
            ("/max_tokens", None),
            ("/messages", None),
            ("/messages/1/content/0/signature", None),
            ("/messages/1/content/2/id", None),
            ("/messages/2/content/0/tool_use_id", None),
            ("/tools/0/input_schema", None),
        ];
        let responses = [
            ("/extra_body", Some(json!({}))),
            ("/messages", Some(json!([]))),
            ("/max_tokens", Some(json!(9))),
            ("/reasoning/budget", Some(json!(1))),
            ("/include", Some(json!(["reasoning"]))),
            ("/input/0/cache_control", Some(json!({"type": "ephemeral"}))),
            ("/input/1/thinking", Some(json!("t"))),
            ("/input/2/tool_calls", Some(json!([]))),
            ("/input/2/phase", Some(json!("thinking"))),
            ("/input/3/input", Some(json!({}))),
            ("/input/3/arguments", Some(json!({}))),
            ("/input/4/is_error", Some(json!(true))),
            ("/input/4/output", Some(json!({"type": "input_text", "text": "1"}))),
            ("/input/4/output/1/image_url", Some(json!({"url": "data:,"}))),
            ("/tools/0/function", Some(json!({"name": "read_file"}))),
            ("/tools/0/input_schema", Some(json!({}))),
            ("/tool_choice", Some(json!({"type": "none"}))),
            ("/stream", Some(json!(false))),
            ("/stream", None),
            ("/input/1/id", None),
            ("/input/1/summary", None),
            ("/input/3/call_id", None),
            ("/input/3/name", None),
            ("/input/4/output", None),
            ("/tools/0/parameters", None),
            ("/tools/0/strict", None),
        ];
        let tables = [
            (Provider::OpenAi, &openai[..]),
            (Provider::Anthropic, &anthropic),
            (Provider::Responses, &responses),
        ];
        for (provider, table) in tables {
            for change in table {
                let problems = schema_errors(provider, &broken(provider, change.clone()));
                assert!(!problems.is_empty(), "{provider:?}: {change:?} is allowed");
            }
        }
    }
}
