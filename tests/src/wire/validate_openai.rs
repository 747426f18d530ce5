//! What chat completions accept, and what this host promises beyond that (R-50…R-61).

use std::collections::HashSet;

use serde_json::Value;

use super::{Problems, Request, check_distinct, check_headers, has_text, is_id, is_name, is_object};

/// How long OpenAI lets an id be.
const LONGEST_ID: usize = 40;

/// Everything that is wrong with a request; nothing, if it is fine.
pub fn problems(request: &Request) -> Vec<String> {
    let mut problems = Problems::default();
    problems.unless(request.path == "/v1/chat/completions", || format!("the path is {}", request.path));
    check_headers(&mut problems, request);
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    problems.unless(bearer.is_some_and(|key| key.starts_with("sk-")), || "there is no key".into());
    problems.0.extend(problems_of_body(&request.body));
    problems.0
}

/// The same for a body alone.
pub fn problems_of_body(body: &Value) -> Vec<String> {
    let mut problems = Problems::default();
    problems.unless(has_text(&body["model"]), || "no model is named".into());
    problems.unless(body["stream"] == true, || "no stream is asked for".into());
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    frame(&mut problems, messages);
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    check_distinct(&mut problems, calls.map(|call| &call["id"]));
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        let place = format!("message {}", at + 1);
        at += 1;
        match message["role"].as_str() {
            Some("system") => problems.unless(has_text(&message["content"]), || format!("{place}: blank")),
            Some("user") => user(&mut problems, &place, &message["content"]),
            Some("assistant") => at += assistant(&mut problems, &place, message, &messages[at..]),
            Some("tool") => problems.unless(false, || format!("{place}: a result without a call right before it")),
            other => problems.unless(false, || format!("{place}: the role {other:?} is unknown")),
        }
    }
    tools(&mut problems, body, messages);
    problems.0
}

/// Where which role may stand.
fn frame(problems: &mut Problems, messages: &[Value]) {
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    problems.unless(roles.first() == Some(&"system"), || "the first message is not the system prompt".into());
    problems.unless(roles.iter().filter(|role| **role == "system").count() == 1, || "there is not exactly one system prompt".into());
    problems.unless(roles.get(1) == Some(&"user"), || "the conversation does not begin with the user".into());
    problems.unless(matches!(roles.last(), Some(&"user" | &"tool")), || "the last word is not to the model".into());
    for role in ["user", "assistant"] {
        problems.unless(!roles.windows(2).any(|pair| pair == [role, role]), || format!("two messages of the {role} in a row"));
    }
}

fn user(problems: &mut Problems, place: &str, content: &Value) {
    let fine = match content {
        Value::Array(parts) => !parts.is_empty() && parts.iter().all(|part| part["type"] != "text" || has_text(&part["text"])),
        text => has_text(text),
    };
    problems.unless(fine, || format!("{place}: blank text"));
}

/// Checks a message with the results that follow it, and says how many those are.
fn assistant(problems: &mut Problems, place: &str, message: &Value, after: &[Value]) -> usize {
    let content = &message["content"];
    problems.unless(content.is_null() || has_text(content), || format!("{place}: blank text"));
    let Some(calls) = message.get("tool_calls") else {
        problems.unless(has_text(content), || format!("{place}: neither text nor calls"));
        return 0;
    };
    let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
    problems.unless(!calls.is_empty(), || format!("{place}: an empty list of calls"));
    for call in calls {
        let id = call["id"].as_str().unwrap_or_default();
        problems.unless(is_id(id, LONGEST_ID), || format!("{place}: {id:?} is no id"));
        problems.unless(call["type"] == "function", || format!("{place}: a call is no function"));
        problems
            .unless(call["function"]["name"].as_str().is_some_and(is_name), || format!("{place}: {} is no name", call["function"]["name"]));
        problems.unless(is_object(&call["function"]["arguments"]), || format!("{place}: the arguments are no object"));
    }
    let results = after.iter().take_while(|message| message["role"] == "tool").count();
    let answered: Vec<&Value> = after[..results].iter().map(|result| &result["tool_call_id"]).collect();
    let asked: Vec<&Value> = calls.iter().map(|call| &call["id"]).collect();
    problems.unless(answered == asked, || format!("{place}: the calls {asked:?} have the results {answered:?}"));
    for result in &after[..results] {
        problems.unless(has_text(&result["content"]), || format!("{place}: a blank result"));
    }
    results
}

fn tools(problems: &mut Problems, body: &Value, messages: &[Value]) {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let needed = messages.iter().any(|message| message.get("tool_calls").is_some() || message["role"] == "tool");
    problems.unless(!tools.is_empty() || !needed, || "there are calls, and no tools are offered".into());
    problems.unless(body.get("tools").is_none() || !tools.is_empty(), || "an empty list of tools".into());
    let mut names = HashSet::new();
    for tool in tools {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        problems.unless(tool["type"] == "function" && is_name(name), || format!("{name:?} is no tool"));
        problems.unless(names.insert(name), || format!("two tools are named {name:?}"));
        problems.unless(tool["function"]["parameters"]["type"] == "object", || format!("{name}: its parameters are no object"));
    }
    if let Some(choice) = body.get("tool_choice") {
        problems.unless(matches!(choice.as_str(), Some("none" | "auto" | "required")), || format!("the tool choice is {choice}"));
        problems.unless(!tools.is_empty(), || "a tool choice without tools".into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> Value {
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": "{}"}});
        json!({
            "model": "m", "stream": true, "tool_choice": "none",
            "tools": [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}],
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
        assert_eq!(problems_of_body(&good()), [""; 0]);
        type Break = fn(&mut Value);
        let table: &[(&str, Break)] = &[
            ("no model", |b| b["model"] = "".into()),
            ("no stream", |b| b["stream"] = false.into()),
            ("not the system prompt", |b| b["messages"][0]["role"] = "user".into()),
            ("not exactly one system", |b| b["messages"].as_array_mut().unwrap().push(json!({"role": "system", "content": "x"}))),
            ("not begin with the user", |b| drop(b["messages"].as_array_mut().unwrap().remove(1))),
            ("not to the model", |b| b["messages"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": "x"}))),
            ("two messages of the user", |b| b["messages"].as_array_mut().unwrap().insert(1, json!({"role": "user", "content": "x"}))),
            ("message 2: blank", |b| b["messages"][1]["content"] = " \n".into()),
            ("message 2: blank", |b| b["messages"][1]["content"] = json!([{"type": "text", "text": ""}])),
            ("message 3: blank", |b| b["messages"][2]["content"] = "".into()),
            ("neither text nor calls", |b| drop(b["messages"][2].as_object_mut().unwrap().remove("tool_calls"))),
            ("an empty list of calls", |b| b["messages"][2]["tool_calls"] = json!([])),
            ("two calls have the id", |b| b["messages"][2]["tool_calls"][1]["id"] = "a".into()),
            ("is no id", |b| b["messages"][2]["tool_calls"][1]["id"] = "".into()),
            ("is no id", |b| b["messages"][2]["tool_calls"][1]["id"] = "x".repeat(41).into()),
            ("two calls have the id", |b| {
                let again = [b["messages"][2].clone(), b["messages"][3].clone(), b["messages"][4].clone()];
                b["messages"].as_array_mut().unwrap().extend(again);
            }),
            ("is no name", |b| b["messages"][2]["tool_calls"][1]["function"]["name"] = "read file".into()),
            ("the arguments are no object", |b| b["messages"][2]["tool_calls"][1]["function"]["arguments"] = json!({})),
            ("have the results", |b| drop(b["messages"].as_array_mut().unwrap().pop())),
            ("have the results", |b| b["messages"].as_array_mut().unwrap().swap(3, 4)),
            ("have the results", |b| b["messages"][4]["tool_call_id"] = "c".into()),
            ("have the results", |b| b["messages"].as_array_mut().unwrap().insert(3, json!({"role": "user", "content": "x"}))),
            ("a result without a call", |b| b["messages"].as_array_mut().unwrap().insert(2, json!({"role": "tool", "tool_call_id": "z"}))),
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
            let problems = problems_of_body(&body);
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
        }
    }
}
