//! Tests of requests of OpenAI's Responses API.

mod streams;

use serde_json::{Value, json};

use super::{ResponsesDialect, request};
use crate::conversation::{ModelReasoning, ModelResponse, ResponseBlock, Transcript};
use crate::model::test_server::{
    empty_request, full_request, full_transcript, pruned_transcript, two_tools,
};

fn thinking() -> ResponsesDialect {
    ResponsesDialect {
        is_openai: true,
        encrypts_thinking: true,
        has_phases: true,
        ..ResponsesDialect::default()
    }
}

fn input(transcript: &Transcript, dialect: &ResponsesDialect, with_thinking: bool) -> Value {
    request::body("m", &empty_request(transcript), dialect, with_thinking)["input"].clone()
}

#[test]
fn r005_r009_r055_r081_r092_a_whole_conversation_on_the_wire() {
    let (transcript, tools) = (full_transcript(), two_tools());
    let request = full_request(&transcript, &tools);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let picture = "[image, image/png: this model does not accept images]";
    let expected = json!({
        "model": "gpt-6-sol",
        "input": [
            {"type": "message", "role": "user", "content": "Are you there?\n\nWhat is in here?"},
            {
                "type": "reasoning", "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "In short."}],
                "encrypted_content": "sealed",
            },
            {
                "type": "message", "role": "assistant", "content": "Let me look.",
                "phase": "commentary",
            },
            {
                "type": "function_call", "call_id": "c1", "name": "list_dir",
                "arguments": "{\"path\": \".\", \"n\": 1.0}",
            },
            {"type": "function_call", "call_id": "c2", "name": "todo", "arguments": "{}"},
            {
                "type": "function_call", "call_id": "c3", "name": "see_this",
                "arguments": "{\"unparsed_arguments\":\"{\\\"a\\\":1}{\\\"b\\\":2}\"}",
            },
            {"type": "function_call_output", "call_id": "c1", "output": format!("a.rs\n{picture}")},
            {"type": "function_call_output", "call_id": "c2", "output": "(no output)"},
            {"type": "function_call_output", "call_id": "c3", "output": format!("Error: no such \
                tool\n{picture}")},
            {
                "type": "message", "role": "assistant", "content": "One file.",
                "phase": "final_answer",
            },
            {"type": "message", "role": "user", "content": "Thanks.\n\nBe brief."},
        ],
        "stream": true,
        "store": false,
        "instructions": "You are careful.",
        "tools": [
            {
                "type": "function", "name": "list_dir", "description": "Lists a folder.",
                "parameters": schema, "strict": false,
            },
            {
                "type": "function", "name": "bash", "description": "", "parameters": schema,
                "strict": false,
            },
        ],
        "tool_choice": "none",
        "include": ["reasoning.encrypted_content"],
    });
    assert_eq!(request::body("gpt-6-sol", &request, &thinking(), true), expected);
}

#[test]
fn other_servers_get_the_full_form_of_an_answer() {
    let said = |transcript: &Transcript| -> Vec<Value> {
        let items = input(transcript, &ResponsesDialect::default(), true);
        items
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| item["role"] == "assistant")
            .cloned()
            .collect()
    };
    let message = |id: &str, text: &str| {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        json!({
            "type": "message", "role": "assistant", "id": id, "status": "completed",
            "content": content,
        })
    };
    let mut transcript = full_transcript();
    let before = said(&transcript);
    assert_eq!(before, [message("msg_1_0_4", "Let me look."), message("msg_1_1_0", "One file.")]);
    let answer = ModelResponse {
        blocks: vec![ResponseBlock::Text("You are welcome.".into())],
        ..ModelResponse::default()
    };
    transcript.record(crate::conversation::AssistantTurn::without_calls(answer).expect("text"));
    assert_eq!(said(&transcript)[..2], before, "the sent content is unchanged");
}

#[test]
fn unset_options_are_not_sent() {
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let body =
        |dialect: &ResponsesDialect| request::body("m", &empty_request(&transcript), dialect, true);
    let plain = json!({
        "model": "m", "input": [{"type": "message", "role": "user", "content": "Hi"}],
        "stream": true, "store": false,
    });
    assert_eq!(body(&ResponsesDialect::default()), plain);
    let chosen = body(&ResponsesDialect {
        reasoning_effort: Some("high".into()),
        max_output: Some(9),
        ..ResponsesDialect::default()
    });
    assert_eq!(
        (&chosen["reasoning"], &chosen["max_output_tokens"]),
        (&json!({"effort": "high"}), &json!(9))
    );
}

#[test]
fn r090_thinking_is_sent_back_only_before_its_output_and_only_if_accepted() {
    let of_type = |input: Value| {
        input.as_array().into_iter().flatten().filter(|item| item["type"] == "reasoning").count()
    };
    assert_eq!(of_type(input(&full_transcript(), &thinking(), true)), 1);
    assert_eq!(of_type(input(&full_transcript(), &thinking(), false)), 0);
    assert_eq!(of_type(input(&full_transcript(), &ResponsesDialect::default(), true)), 0);
    // Thinking without output after it would be refused.
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let sealed = |id: &str| {
        ResponseBlock::Reasoning(ModelReasoning::Sealed {
            id: id.into(),
            summary: vec![],
            data: "sealed".into(),
        })
    };
    let blocks = vec![sealed("rs_1"), ResponseBlock::Text("Hello.".into()), sealed("rs_2")];
    transcript.record(
        crate::conversation::AssistantTurn::without_calls(ModelResponse {
            blocks,
            ..ModelResponse::default()
        })
        .expect("text"),
    );
    let sent = input(&transcript, &thinking(), true);
    assert_eq!((sent[1]["id"].as_str(), of_type(sent.clone())), (Some("rs_1"), 1), "{sent}");
}

#[test]
fn r065_r070_a_summary_is_context_and_an_old_result_is_a_placeholder() {
    let sent = input(&pruned_transcript(), &ResponsesDialect::default(), true);
    let text = sent[0]["content"].as_str().expect("text");
    assert!(
        text.starts_with("[Context from the host, not a message from the user")
            && text.ends_with("One."),
        "{text}"
    );
    assert_eq!(
        (sent[1]["type"].as_str(), sent[2]["output"].as_str()),
        (Some("function_call"), Some(crate::conversation::PRUNED_PLACEHOLDER))
    );
}

#[test]
fn pictures_are_part_of_the_result_if_the_server_accepts_them() {
    let sent = input(
        &full_transcript(),
        &ResponsesDialect { accepts_images: true, ..ResponsesDialect::default() },
        true,
    );
    let picture = json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="});
    assert_eq!(sent[5]["output"], json!([{"type": "input_text", "text": "a.rs"}, picture]));
    assert_eq!(
        sent[7]["output"],
        json!([{"type": "input_text", "text": "Error: no such tool"}, picture])
    );
}
