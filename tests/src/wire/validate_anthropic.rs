//! What Anthropic's messages accept, and what this host promises beyond that (R-50…R-61).

use std::collections::HashSet;

use serde_json::Value;

use super::{ReceivedRequest, ValidationErrors, check_distinct, check_headers, has_text, is_name};

/// More marks for the cache are refused.
const MAX_CACHE_MARKS: usize = 4;

/// Everything that is wrong with a request; nothing, if it is fine.
pub fn request_errors(request: &ReceivedRequest) -> Vec<String> {
    let mut problems = ValidationErrors::default();
    problems.require(request.path == "/v1/messages", || format!("the path is {}", request.path));
    check_headers(&mut problems, request);
    problems.require(request.header("x-api-key").is_some_and(|key| key.starts_with("sk-")), || {
        "there is no key".into()
    });
    problems.require(request.header("anthropic-version") == Some("2023-06-01"), || {
        "there is no version".into()
    });
    problems.0.extend(body_errors(&request.body));
    problems.0
}

/// The same for a body alone.
pub fn body_errors(body: &Value) -> Vec<String> {
    let mut problems = ValidationErrors::default();
    problems.require(has_text(&body["model"]), || "no model is named".into());
    problems.require(body["stream"] == true, || "no stream is asked for".into());
    problems.require(body["max_tokens"].as_u64().is_some_and(|most| most > 0), || {
        "no limit on output".into()
    });
    let system = match &body["system"] {
        Value::Array(blocks) => {
            !blocks.is_empty()
                && blocks.iter().all(|block| block["type"] == "text" && has_text(&block["text"]))
        }
        text => has_text(text),
    };
    problems.require(system, || "there is no system prompt, or a blank one".into());
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    problems.require(messages.first().is_some_and(|m| m["role"] == "user"), || {
        "the conversation does not begin with the user".into()
    });
    problems.require(messages.last().is_some_and(|m| m["role"] == "user"), || {
        "the last word is not to the model".into()
    });
    problems.require(!messages.windows(2).any(|pair| pair[0]["role"] == pair[1]["role"]), || {
        "two messages of one role in a row".into()
    });
    let mut asked: Vec<&Value> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("message {}", at + 1);
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        problems.require(!blocks.is_empty(), || format!("{place}: no content"));
        match message["role"].as_str() {
            Some("user") => check_user(&mut problems, &place, blocks, &std::mem::take(&mut asked)),
            Some("assistant") => asked = check_assistant(&mut problems, &place, blocks),
            other => problems.require(false, || format!("{place}: the role {other:?} is unknown")),
        }
    }
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    check_distinct(
        &mut problems,
        blocks.filter(|block| block["type"] == "tool_use").map(|block| &block["id"]),
    );
    check_tools(&mut problems, body, messages);
    let marks = body.to_string().matches("\"cache_control\"").count();
    problems.require(marks <= MAX_CACHE_MARKS, || format!("{marks} marks for the cache"));
    problems.0
}

fn check_user(problems: &mut ValidationErrors, place: &str, blocks: &[Value], asked: &[&Value]) {
    let results = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
    let answered: Vec<&Value> =
        blocks[..results].iter().map(|result| &result["tool_use_id"]).collect();
    problems.require(answered == asked, || {
        format!("{place}: the calls {asked:?} have the results {answered:?}")
    });
    for result in &blocks[..results] {
        let parts = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        problems.require(!parts.is_empty() || has_text(&result["content"]), || {
            format!("{place}: a blank result")
        });
        problems.require(
            parts.iter().all(|part| part["type"] != "text" || has_text(&part["text"])),
            || format!("{place}: blank text in a result"),
        );
        let only_text = parts.iter().all(|part| part["type"] == "text");
        problems.require(result["is_error"] != true || only_text, || {
            format!("{place}: an error with more than text")
        });
    }
    for block in &blocks[results..] {
        match block["type"].as_str() {
            Some("text") => {
                problems.require(has_text(&block["text"]), || format!("{place}: blank text"))
            }
            Some("image") => {}
            Some("tool_result") => {
                problems.require(false, || format!("{place}: a result after other content"))
            }
            other => problems.require(false, || format!("{place}: a block of the kind {other:?}")),
        }
    }
}

/// The ids of the calls.
fn check_assistant<'a>(
    problems: &mut ValidationErrors,
    place: &str,
    blocks: &'a [Value],
) -> Vec<&'a Value> {
    let mut asked = Vec::new();
    let mut ids = HashSet::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => {
                problems.require(has_text(&block["text"]), || format!("{place}: blank text"))
            }
            Some("thinking") => problems.require(has_text(&block["signature"]), || {
                format!("{place}: thinking without signature")
            }),
            Some("redacted_thinking") => problems.require(has_text(&block["data"]), || {
                format!("{place}: redacted thinking without data")
            }),
            Some("tool_use") => {
                let id = block["id"].as_str().unwrap_or_default();
                problems.require(is_name(id), || format!("{place}: {id:?} is no id"));
                problems
                    .require(ids.insert(id), || format!("{place}: two calls have the id {id:?}"));
                problems.require(block["name"].as_str().is_some_and(is_name), || {
                    format!("{place}: {} is no name", block["name"])
                });
                problems.require(block["input"].is_object(), || {
                    format!("{place}: the input is no object")
                });
                asked.push(&block["id"]);
            }
            other => problems.require(false, || format!("{place}: a block of the kind {other:?}")),
        }
    }
    let says =
        blocks.iter().any(|block| matches!(block["type"].as_str(), Some("text" | "tool_use")));
    problems.require(says, || format!("{place}: neither text nor calls"));
    asked
}

fn check_tools(problems: &mut ValidationErrors, body: &Value, messages: &[Value]) {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let needed = blocks
        .into_iter()
        .any(|block| matches!(block["type"].as_str(), Some("tool_use" | "tool_result")));
    problems.require(!tools.is_empty() || !needed, || {
        "there are calls, and no tools are offered".into()
    });
    let mut names = HashSet::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        problems.require(is_name(name), || format!("{name:?} is no tool"));
        problems.require(names.insert(name), || format!("two tools are named {name:?}"));
        problems.require(tool["input_schema"]["type"] == "object", || {
            format!("{name}: its input is no object")
        });
    }
    if let Some(choice) = body.get("tool_choice") {
        problems.require(matches!(choice["type"].as_str(), Some("none" | "auto" | "any")), || {
            format!("the tool choice is {choice}")
        });
        problems.require(!tools.is_empty(), || "a tool choice without tools".into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> Value {
        let call =
            |id: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {}});
        let result = |id: &str| {
            let content = json!([{"type": "text", "text": "1"}]);
            json!({"type": "tool_result", "tool_use_id": id, "content": content})
        };
        json!({
            "model": "m", "stream": true, "max_tokens": 1, "tool_choice": {"type": "none"},
            "system": [{"type": "text", "text": "s"}],
            "tools": [{"name": "read_file", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "u"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"}, call("a"), call("b"),
                ]},
                {"role": "user", "content": [
                    result("a"), result("b"), {"type": "text", "text": "u"},
                ]},
            ],
        })
    }

    fn blocks(body: &mut Value, message: usize) -> &mut Vec<Value> {
        body["messages"][message]["content"].as_array_mut().unwrap()
    }

    #[test]
    fn r060_each_kind_of_broken_body_is_found() {
        assert_eq!(body_errors(&good()), [""; 0]);
        type Break = fn(&mut Value);
        let table: &[(&str, Break)] = &[
            ("no model", |b| b["model"] = "".into()),
            ("no stream", |b| b["stream"] = false.into()),
            ("no limit on output", |b| b["max_tokens"] = 0.into()),
            ("no system prompt", |b| drop(b.as_object_mut().unwrap().remove("system"))),
            ("no system prompt", |b| b["system"][0]["text"] = " ".into()),
            ("not begin with the user", |b| drop(b["messages"].as_array_mut().unwrap().remove(0))),
            ("not to the model", |b| drop(b["messages"].as_array_mut().unwrap().pop())),
            ("of one role in a row", |b| drop(b["messages"].as_array_mut().unwrap().remove(1))),
            ("the role", |b| b["messages"][0]["role"] = "system".into()),
            ("no content", |b| b["messages"][0]["content"] = json!([])),
            ("message 1: blank text", |b| blocks(b, 0)[0]["text"] = "".into()),
            ("thinking without signature", |b| blocks(b, 1)[0]["signature"] = "".into()),
            ("neither text nor calls", |b| blocks(b, 1).truncate(1)),
            ("two calls have the id", |b| blocks(b, 1)[2]["id"] = "a".into()),
            ("two calls have the id", |b| {
                let again = [b["messages"][1].clone(), b["messages"][2].clone()];
                b["messages"].as_array_mut().unwrap().extend(again);
            }),
            ("is no id", |b| blocks(b, 1)[2]["id"] = "a b".into()),
            ("is no name", |b| blocks(b, 1)[2]["name"] = "".into()),
            ("the input is no object", |b| blocks(b, 1)[2]["input"] = "{}".into()),
            ("a block of the kind", |b| blocks(b, 1)[2]["type"] = "tool_result".into()),
            ("have the results", |b| drop(blocks(b, 2).remove(0))),
            ("have the results", |b| blocks(b, 2).swap(0, 1)),
            ("have the results", |b| blocks(b, 2)[1]["tool_use_id"] = "c".into()),
            ("a result after other content", |b| blocks(b, 2).swap(1, 2)),
            ("a blank result", |b| blocks(b, 2)[0]["content"] = json!([])),
            ("blank text in a result", |b| blocks(b, 2)[0]["content"][0]["text"] = "".into()),
            ("an error with more than text", |b| {
                blocks(b, 2)[0]["is_error"] = true.into();
                blocks(b, 2)[0]["content"][0]["type"] = "image".into();
            }),
            ("no tools are offered", |b| drop(b.as_object_mut().unwrap().remove("tools"))),
            ("its input is no object", |b| b["tools"][0]["input_schema"] = json!({})),
            ("two tools are named", |b| {
                let tool = b["tools"][0].clone();
                b["tools"].as_array_mut().unwrap().push(tool);
            }),
            ("the tool choice is", |b| b["tool_choice"] = "none".into()),
            ("marks for the cache", |b| {
                b["metadata"] = json!(vec![json!({"cache_control": 1}); 5])
            }),
        ];
        for (expected, break_it) in table {
            let mut body = good();
            break_it(&mut body);
            let problems = body_errors(&body);
            assert!(
                problems.iter().any(|problem| problem.contains(expected)),
                "{expected}: {problems:?}"
            );
        }
    }
}
