//! What chat completions accept, and what this host promises beyond that (R-50…R-61).

use std::collections::HashSet;

use serde_json::Value;

use super::{
    ReceivedRequest, ValidationErrors, check_distinct, check_headers, has_text, is_id, is_name,
    is_object,
};

/// How long OpenAI lets an id be.
const MAX_ID_BYTES: usize = 40;

/// Everything that is wrong with a request; nothing, if it is fine.
pub fn request_errors(request: &ReceivedRequest) -> Vec<String> {
    let mut problems = ValidationErrors::default();
    problems.require(request.path == "/v1/chat/completions", || {
        format!("the path is {}", request.path)
    });
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
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    check_roles(&mut problems, messages);
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    check_distinct(&mut problems, calls.map(|call| &call["id"]));
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        let place = format!("message {}", at + 1);
        at += 1;
        match message["role"].as_str() {
            Some("system") => {
                problems.require(has_text(&message["content"]), || format!("{place}: blank"))
            }
            Some("user") => check_user(&mut problems, &place, &message["content"]),
            Some("assistant") => {
                at += check_assistant(&mut problems, &place, message, &messages[at..])
            }
            Some("tool") => problems
                .require(false, || format!("{place}: a result without a call right before it")),
            other => problems.require(false, || format!("{place}: the role {other:?} is unknown")),
        }
    }
    check_tools(&mut problems, body, messages);
    problems.0
}

/// Where which role may stand.
fn check_roles(problems: &mut ValidationErrors, messages: &[Value]) {
    let roles: Vec<&str> =
        messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    problems.require(roles.first() == Some(&"system"), || {
        "the first message is not the system prompt".into()
    });
    problems.require(roles.iter().filter(|role| **role == "system").count() == 1, || {
        "there is not exactly one system prompt".into()
    });
    problems.require(roles.get(1) == Some(&"user"), || {
        "the conversation does not begin with the user".into()
    });
    problems.require(matches!(roles.last(), Some(&"user" | &"tool")), || {
        "the last word is not to the model".into()
    });
    for role in ["user", "assistant"] {
        problems.require(!roles.windows(2).any(|pair| pair == [role, role]), || {
            format!("two messages of the {role} in a row")
        });
    }
}

fn check_user(problems: &mut ValidationErrors, place: &str, content: &Value) {
    let fine = match content {
        Value::Array(parts) => {
            !parts.is_empty()
                && parts.iter().all(|part| part["type"] != "text" || has_text(&part["text"]))
        }
        text => has_text(text),
    };
    problems.require(fine, || format!("{place}: blank text"));
}

/// Checks a message with the results that follow it, and says how many those are.
fn check_assistant(
    problems: &mut ValidationErrors,
    place: &str,
    message: &Value,
    after: &[Value],
) -> usize {
    let content = &message["content"];
    problems.require(content.is_null() || has_text(content), || format!("{place}: blank text"));
    let Some(calls) = message.get("tool_calls") else {
        problems.require(has_text(content), || format!("{place}: neither text nor calls"));
        return 0;
    };
    let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
    problems.require(!calls.is_empty(), || format!("{place}: an empty list of calls"));
    for call in calls {
        let id = call["id"].as_str().unwrap_or_default();
        problems.require(is_id(id, MAX_ID_BYTES), || format!("{place}: {id:?} is no id"));
        problems.require(call["type"] == "function", || format!("{place}: a call is no function"));
        problems.require(call["function"]["name"].as_str().is_some_and(is_name), || {
            format!("{place}: {} is no name", call["function"]["name"])
        });
        problems.require(is_object(&call["function"]["arguments"]), || {
            format!("{place}: the arguments are no object")
        });
    }
    let results = after.iter().take_while(|message| message["role"] == "tool").count();
    let answered: Vec<&Value> =
        after[..results].iter().map(|result| &result["tool_call_id"]).collect();
    let asked: Vec<&Value> = calls.iter().map(|call| &call["id"]).collect();
    problems.require(answered == asked, || {
        format!("{place}: the calls {asked:?} have the results {answered:?}")
    });
    for result in &after[..results] {
        problems.require(has_text(&result["content"]), || format!("{place}: a blank result"));
    }
    results
}

fn check_tools(problems: &mut ValidationErrors, body: &Value, messages: &[Value]) {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let needed = messages
        .iter()
        .any(|message| message.get("tool_calls").is_some() || message["role"] == "tool");
    problems.require(!tools.is_empty() || !needed, || {
        "there are calls, and no tools are offered".into()
    });
    problems.require(body.get("tools").is_none() || !tools.is_empty(), || {
        "an empty list of tools".into()
    });
    let mut names = HashSet::new();
    for tool in tools {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        problems.require(tool["type"] == "function" && is_name(name), || {
            format!("{name:?} is no tool")
        });
        problems.require(names.insert(name), || format!("two tools are named {name:?}"));
        problems.require(tool["function"]["parameters"]["type"] == "object", || {
            format!("{name}: its parameters are no object")
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
            let function = json!({"name": "read_file", "arguments": "{}"});
            json!({"id": id, "type": "function", "function": function})
        };
        json!({
            "model": "m", "stream": true, "tool_choice": "none",
            "tools": [{"type": "function", "function": {
                "name": "read_file", "parameters": {"type": "object"},
            }}],
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "u"},
                {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
                {"role": "tool", "tool_call_id": "a", "content": "1"},
                {"role": "tool", "tool_call_id": "b", "content": "2"},
            ],
        })
    }

    #[test]
    fn r060_each_kind_of_broken_body_is_found() {
        assert_eq!(body_errors(&good()), [""; 0]);
        type Break = fn(&mut Value);
        let table: &[(&str, Break)] = &[
            ("no model", |b| b["model"] = "".into()),
            ("no stream", |b| b["stream"] = false.into()),
            ("not the system prompt", |b| b["messages"][0]["role"] = "user".into()),
            ("not exactly one system", |b| {
                b["messages"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"role": "system", "content": "x"}))
            }),
            ("not begin with the user", |b| drop(b["messages"].as_array_mut().unwrap().remove(1))),
            ("not to the model", |b| {
                b["messages"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"role": "assistant", "content": "x"}))
            }),
            ("two messages of the user", |b| {
                b["messages"]
                    .as_array_mut()
                    .unwrap()
                    .insert(1, json!({"role": "user", "content": "x"}))
            }),
            ("message 2: blank", |b| b["messages"][1]["content"] = " \n".into()),
            ("message 2: blank", |b| {
                b["messages"][1]["content"] = json!([{"type": "text", "text": ""}])
            }),
            ("message 3: blank", |b| b["messages"][2]["content"] = "".into()),
            ("neither text nor calls", |b| {
                drop(b["messages"][2].as_object_mut().unwrap().remove("tool_calls"))
            }),
            ("an empty list of calls", |b| b["messages"][2]["tool_calls"] = json!([])),
            ("two calls have the id", |b| b["messages"][2]["tool_calls"][1]["id"] = "a".into()),
            ("is no id", |b| b["messages"][2]["tool_calls"][1]["id"] = "".into()),
            ("is no id", |b| b["messages"][2]["tool_calls"][1]["id"] = "x".repeat(41).into()),
            ("two calls have the id", |b| {
                let again =
                    [b["messages"][2].clone(), b["messages"][3].clone(), b["messages"][4].clone()];
                b["messages"].as_array_mut().unwrap().extend(again);
            }),
            ("is no name", |b| {
                b["messages"][2]["tool_calls"][1]["function"]["name"] = "read file".into()
            }),
            ("the arguments are no object", |b| {
                b["messages"][2]["tool_calls"][1]["function"]["arguments"] = json!({})
            }),
            ("have the results", |b| drop(b["messages"].as_array_mut().unwrap().pop())),
            ("have the results", |b| b["messages"].as_array_mut().unwrap().swap(3, 4)),
            ("have the results", |b| b["messages"][4]["tool_call_id"] = "c".into()),
            ("have the results", |b| {
                b["messages"]
                    .as_array_mut()
                    .unwrap()
                    .insert(3, json!({"role": "user", "content": "x"}))
            }),
            ("a result without a call", |b| {
                b["messages"]
                    .as_array_mut()
                    .unwrap()
                    .insert(2, json!({"role": "tool", "tool_call_id": "z"}))
            }),
            ("a blank result", |b| b["messages"][3]["content"] = "".into()),
            ("no tools are offered", |b| drop(b.as_object_mut().unwrap().remove("tools"))),
            ("two tools are named", |b| {
                let tool = b["tools"][0].clone();
                b["tools"].as_array_mut().unwrap().push(tool);
            }),
            ("parameters are no object", |b| b["tools"][0]["function"]["parameters"] = json!({})),
            ("the tool choice is", |b| b["tool_choice"] = json!({"type": "none"})),
            ("the role", |b| b["messages"][1]["role"] = "human".into()),
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
