//! What OpenAI's Responses accept, what stricter servers of that format want, and what this host
//! promises beyond that (R-50…R-61).
//!
//! llama.cpp tells what the assistant said by its `type` and takes it as parts of the type
//! `output_text` only; vLLM reads it as the SDK's own type, in which nothing may be missing. A test
//! is no server of OpenAI's, so that every request to one is held to that.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    ReceivedRequest, ValidationErrors, check_distinct, check_headers, has_text, is_id, is_name,
    is_object,
};

/// How long an id may be.
const MAX_ID_BYTES: usize = 64;

/// Everything that is wrong with a request; nothing, if it is fine.
pub fn request_errors(request: &ReceivedRequest) -> Vec<String> {
    let mut problems = ValidationErrors::default();
    problems.require(request.path == "/v1/responses", || format!("the path is {}", request.path));
    check_headers(&mut problems, request);
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    problems.require(bearer.is_some_and(|key| key.starts_with("sk-")), || "there is no key".into());
    problems.0.extend(body_errors(&request.body));
    problems.0
}

/// The same for a body alone.
pub fn body_errors(body: &Value) -> Vec<String> {
    let mut problems = ValidationErrors::default();
    problems.require(has_text(&body["model"]), || "no model is named".into());
    problems.require(body["stream"] == true, || "no stream is asked for".into());
    problems.require(body["store"] == false, || "it is to be kept".into());
    problems
        .require(body.get("previous_response_id").is_none(), || "it relies on what is kept".into());
    problems.require(has_text(&body["instructions"]), || "there is no system prompt".into());
    let items = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    problems.require(items.first().is_some_and(|item| item["role"] == "user"), || {
        "the conversation does not begin with the user".into()
    });
    let is_to_the_model = items
        .last()
        .is_some_and(|item| item["role"] == "user" || item_kind(item) == "function_call_output");
    problems.require(is_to_the_model, || "the last word is not to the model".into());
    for pair in items.windows(2) {
        problems.require(!pair.iter().all(|item| item["role"] == "user"), || {
            "two messages of the user in a row".into()
        });
    }
    check_distinct(
        &mut problems,
        items.iter().filter(|item| item_kind(item) == "function_call").map(|item| &item["call_id"]),
    );
    check_distinct(
        &mut problems,
        items.iter().filter(|item| item["role"] == "assistant").map(|item| &item["id"]),
    );
    let mut at = 0;
    while at < items.len() {
        at += check_turn(&mut problems, at, &items[at..]);
    }
    let thinks = items.iter().any(|item| item_kind(item) == "reasoning");
    let wants = body["include"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one == "reasoning.encrypted_content"));
    problems.require(!thinks || wants, || "thinking goes back, and none is asked for".into());
    check_tools(&mut problems, body, items);
    problems.0
}

/// What an item is: its type, or the role of a message.
fn item_kind(item: &Value) -> &str {
    let of_message = || item["role"].as_str();
    item["type"].as_str().filter(|kind| *kind != "message").or_else(of_message).unwrap_or_default()
}

/// Checks what the assistant said in one go with the results that follow, or one message of the
/// user; says how many items that is.
fn check_turn(problems: &mut ValidationErrors, at: usize, items: &[Value]) -> usize {
    let place = |n: usize| format!("item {}", at + n + 1);
    match item_kind(&items[0]) {
        "user" => {
            problems
                .require(has_text(&items[0]["content"]), || format!("{}: blank text", place(0)));
            problems.require(items[0]["type"] == "message", || format!("{}: no type", place(0)));
            return 1;
        }
        "function_call_output" => {
            problems.require(false, || {
                format!("{}: a result without a call right before it", place(0))
            });
            return 1;
        }
        _ => {}
    }
    let length = items
        .iter()
        .take_while(|item| matches!(item_kind(item), "assistant" | "reasoning" | "function_call"))
        .count();
    if length == 0 {
        problems.require(false, || format!("{}: {:?} is unknown", place(0), item_kind(&items[0])));
        return 1;
    }
    let mut asked = Vec::new();
    for (n, item) in items[..length].iter().enumerate() {
        match item_kind(item) {
            "assistant" => {
                problems.require(item["type"] == "message", || format!("{}: no type", place(n)));
                let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                let is_text = |part: &Value| {
                    part["type"] == "output_text"
                        && part["annotations"].is_array()
                        && has_text(&part["text"])
                };
                problems.require(!parts.is_empty() && parts.iter().all(is_text), || {
                    format!("{}: no text of an answer", place(n))
                });
                let is_named = item["id"]
                    .as_str()
                    .is_some_and(|id| id.starts_with("msg_") && id.len() <= MAX_ID_BYTES);
                problems.require(is_named, || {
                    format!("{}: {} is no name of a message", place(n), item["id"])
                });
                problems.require(item["status"] == "completed", || {
                    format!("{}: not completed", place(n))
                });
            }
            "reasoning" => {
                problems
                    .require(has_text(&item["id"]) && has_text(&item["encrypted_content"]), || {
                        format!("{}: not sealed", place(n))
                    });
                problems.require(n + 1 < length, || {
                    format!("{}: nothing came of the thinking", place(n))
                });
            }
            _ => {
                let id = item["call_id"].as_str().unwrap_or_default();
                problems
                    .require(is_id(id, MAX_ID_BYTES), || format!("{}: {id:?} is no id", place(n)));
                problems.require(item["name"].as_str().is_some_and(is_name), || {
                    format!("{}: {} is no name", place(n), item["name"])
                });
                problems.require(is_object(&item["arguments"]), || {
                    format!("{}: the arguments are no object", place(n))
                });
                problems.require(item.get("id").is_none(), || {
                    format!("{}: a name of something that is kept", place(n))
                });
                asked.push(id);
            }
        }
    }
    let results =
        items[length..].iter().take_while(|item| item_kind(item) == "function_call_output");
    let answered: Vec<&str> =
        results.clone().map(|item| item["call_id"].as_str().unwrap_or_default()).collect();
    problems.require(answered == asked, || {
        format!("{}: the calls {asked:?} have the results {answered:?}", place(0))
    });
    for result in results {
        let fine = has_text(&result["output"])
            || result["output"].as_array().is_some_and(|parts| !parts.is_empty());
        problems.require(fine, || format!("{}: a blank result", place(0)));
    }
    length + answered.len()
}

fn check_tools(problems: &mut ValidationErrors, body: &Value, items: &[Value]) {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let needed = items.iter().any(|item| item_kind(item) == "function_call");
    problems.require(!tools.is_empty() || !needed, || {
        "there are calls, and no tools are offered".into()
    });
    problems.require(body.get("tools").is_none() || !tools.is_empty(), || {
        "an empty list of tools".into()
    });
    let mut names = HashSet::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        problems.require(tool["type"] == "function" && is_name(name), || {
            format!("{name:?} is no tool")
        });
        problems.require(names.insert(name), || format!("two tools are named {name:?}"));
        problems.require(tool["parameters"]["type"] == "object", || {
            format!("{name}: its parameters are no object")
        });
        problems.require(tool["strict"] == false, || {
            format!("{name}: its arguments would all be required")
        });
    }
    if let Some(choice) = body.get("tool_choice") {
        problems.require(matches!(choice.as_str(), Some("none" | "auto" | "required")), || {
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
        let call = |id: &str| {
            json!({
                "type": "function_call", "call_id": id, "name": "read_file", "arguments": "{}",
            })
        };
        let result =
            |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "1"});
        json!({
            "model": "m", "stream": true, "store": false, "instructions": "s",
            "tool_choice": "none",
            "include": ["reasoning.encrypted_content"],
            "tools": [{
                "type": "function", "name": "read_file", "parameters": {"type": "object"},
                "strict": false,
            }],
            "input": [
                {"type": "message", "role": "user", "content": "u"},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
                {
                    "type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
                },
                call("a"), call("b"), result("a"), result("b"),
            ],
        })
    }

    #[test]
    fn r060_each_kind_of_broken_body_is_found() {
        assert_eq!(body_errors(&good()), [""; 0]);
        type Break = fn(&mut Value);
        fn items(body: &mut Value) -> &mut Vec<Value> {
            body["input"].as_array_mut().expect("a list")
        }
        let table: &[(&str, Break)] = &[
            ("no model", |b| b["model"] = "".into()),
            ("no stream", |b| b["stream"] = false.into()),
            ("to be kept", |b| drop(b.as_object_mut().unwrap().remove("store"))),
            ("relies on what is kept", |b| b["previous_response_id"] = "resp_1".into()),
            ("no system prompt", |b| b["instructions"] = " ".into()),
            ("not begin with the user", |b| drop(items(b).remove(0))),
            ("not to the model", |b| items(b).push(json!({"role": "assistant", "content": "x"}))),
            ("two messages of the user", |b| {
                items(b).insert(0, json!({"role": "user", "content": "x"}))
            }),
            ("item 1: blank", |b| b["input"][0]["content"] = " ".into()),
            ("item 1: no type", |b| drop(b["input"][0].as_object_mut().unwrap().remove("type"))),
            ("item 3: no type", |b| drop(b["input"][2].as_object_mut().unwrap().remove("type"))),
            ("item 3: no text", |b| b["input"][2]["content"] = "I look.".into()),
            ("item 3: no text", |b| b["input"][2]["content"][0]["text"] = "".into()),
            ("item 3: no text", |b| b["input"][2]["content"][0]["type"] = "input_text".into()),
            ("is no name of a message", |b| {
                drop(b["input"][2].as_object_mut().unwrap().remove("id"))
            }),
            ("not completed", |b| drop(b["input"][2].as_object_mut().unwrap().remove("status"))),
            ("two calls have the id", |b| {
                let again: Vec<Value> = items(b)[3..].to_vec();
                items(b).extend(again);
            }),
            ("a name of something that is kept", |b| b["input"][3]["id"] = "fc_1".into()),
            ("not sealed", |b| b["input"][1]["encrypted_content"] = Value::Null),
            ("nothing came of the thinking", |b| items(b).swap(1, 4)),
            ("none is asked for", |b| drop(b.as_object_mut().unwrap().remove("include"))),
            ("two calls have the id", |b| b["input"][4]["call_id"] = "a".into()),
            ("is no id", |b| b["input"][4]["call_id"] = "".into()),
            ("is no name", |b| b["input"][4]["name"] = "read file".into()),
            ("the arguments are no object", |b| b["input"][4]["arguments"] = json!({})),
            ("have the results", |b| drop(items(b).pop())),
            ("have the results", |b| items(b).swap(5, 6)),
            ("have the results", |b| items(b).insert(5, json!({"role": "user", "content": "x"}))),
            ("a result without a call", |b| {
                items(b).insert(
                    1,
                    json!({"type": "function_call_output", "call_id": "z", "output": "x"}),
                )
            }),
            ("a blank result", |b| b["input"][5]["output"] = "".into()),
            ("is unknown", |b| items(b).insert(1, json!({"type": "item_reference", "id": "x"}))),
            ("no tools are offered", |b| drop(b.as_object_mut().unwrap().remove("tools"))),
            ("two tools are named", |b| {
                let tool = b["tools"][0].clone();
                b["tools"].as_array_mut().unwrap().push(tool);
            }),
            ("parameters are no object", |b| b["tools"][0]["parameters"] = json!({})),
            ("would all be required", |b| b["tools"][0]["strict"] = true.into()),
            ("the tool choice is", |b| b["tool_choice"] = json!({"type": "none"})),
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
