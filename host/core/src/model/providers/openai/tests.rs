//! Tests of requests of chat completions.

mod streams;

use serde_json::{Value, json};

use super::{ChatDialect, request};
use crate::agent::ports::ModelRequest;
use crate::conversation::{ModelResponse, ResponseBlock, Transcript};
use crate::model::test_server::{
    empty_request, full_request, full_transcript, pruned_transcript, two_tools,
};

fn sent(transcript: &Transcript, dialect: &ChatDialect) -> Value {
    request::body("m", &empty_request(transcript), dialect)["messages"].clone()
}

#[test]
fn r005_r009_r055_r081_r092_a_whole_conversation_on_the_wire() {
    let (transcript, tools) = (full_transcript(), two_tools());
    let request = full_request(&transcript, &tools);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let expected = json!({
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "Are you there?\n\nWhat is in here?"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [
                {
                    "id": "c1", "type": "function",
                    "function": {"name": "list_dir", "arguments": "{\"path\": \".\", \"n\": 1.0}"},
                },
                {"id": "c2", "type": "function", "function": {"name": "todo", "arguments": "{}"}},
                {
                    "id": "c3", "type": "function",
                    "function": {
                        "name": "see_this",
                        "arguments": "{\"unparsed_arguments\":\"{\\\"a\\\":1}{\\\"b\\\":2}\"}",
                    },
                },
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a.rs\n[image, image/png: this model \
                does not accept images]"},
            {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
            {"role": "tool", "tool_call_id": "c3", "content": "Error: no such tool\n[image, \
                image/png: this model does not accept images]"},
            {"role": "assistant", "content": "One file."},
            {"role": "user", "content": "Thanks.\n\nBe brief."},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "list_dir", "description": "Lists a folder.", "parameters": schema,
                },
            },
            {
                "type": "function",
                "function": {"name": "bash", "description": "", "parameters": schema},
            },
        ],
        "tool_choice": "none",
    });
    assert_eq!(request::body("gpt-4.1", &request, &ChatDialect::default()), expected);
}

#[test]
fn mistral_models_get_short_ids_and_a_strict_message_order() {
    let mut transcript = Transcript::new();
    for exchange in &full_transcript().exchanges()[1..2] {
        transcript.begin_exchange(exchange.prompt());
        transcript.record(exchange.turns()[0].clone());
    }
    transcript.begin_exchange("Never mind.");
    let dialect = ChatDialect::for_model("Devstral-Small-2507", false);
    let messages = sent(&transcript, &dialect);
    let roles: Vec<_> = messages
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "tool", "assistant", "user"]);
    assert_eq!(messages[5]["content"], "(No answer.)");
    for n in 0..3 {
        let id = messages[1]["tool_calls"][n]["id"].as_str().expect("an id");
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert_eq!(messages[2 + n]["tool_call_id"], id);
    }
    assert_eq!(
        sent(&transcript, &ChatDialect::for_model("qwen3", false))[1]["tool_calls"][0]["id"],
        "c1"
    );
}

#[test]
fn r057_a_blank_system_prompt_is_not_sent() {
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let body = request::body("m", &empty_request(&transcript), &ChatDialect::default());
    let expected = json!({
        "model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(body, expected);
}

#[test]
fn pictures_follow_the_results_if_the_server_accepts_them() {
    let messages =
        sent(&full_transcript(), &ChatDialect { accepts_images: true, ..ChatDialect::default() });
    assert_eq!(messages[2]["content"], "a.rs\n[image, image/png: see below the results]");
    let picture =
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}});
    let expected = json!({"role": "user", "content": [
        {"type": "text", "text": "Images from the results above, in order:"},
        picture, picture,
    ]});
    assert_eq!(messages[5], expected);
    assert_eq!(messages[6], json!({"role": "assistant", "content": "One file."}));
}

#[test]
fn r009_thinking_is_sent_back_to_models_that_require_it() {
    let messages = sent(&full_transcript(), &ChatDialect::for_model("deepseek-v4", false));
    assert_eq!(messages[1]["reasoning_content"], "I should look.Unsigned.");
    assert!(
        sent(&full_transcript(), &ChatDialect::for_model("gpt-4.1", true))[1]
            .get("reasoning_content")
            .is_none()
    );
}

#[test]
fn r078_a_note_is_the_users_side_and_the_last_word() {
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let turn = ModelResponse {
        blocks: vec![ResponseBlock::Text("Hello.".into())],
        ..ModelResponse::default()
    };
    transcript.record(crate::conversation::AssistantTurn::without_calls(turn).expect("text"));
    let body = request::body(
        "m",
        &ModelRequest { note: Some("Go on."), ..empty_request(&transcript) },
        &ChatDialect::default(),
    );
    assert_eq!(body["messages"][2], json!({"role": "user", "content": "Go on."}));
}

#[test]
fn openai_itself_gets_its_own_dialect() {
    let (transcript, tools) = (full_transcript(), two_tools());
    let request = ModelRequest { tools: &tools, ..empty_request(&transcript) };
    let dialect = ChatDialect { max_output: Some(9), ..ChatDialect::for_model("gpt-6-sol", true) };
    let azure = ChatDialect {
        uses_max_completion_tokens: true,
        max_output: Some(9),
        ..ChatDialect::for_model("gpt-6-sol", false)
    };
    assert_eq!(request::body("gpt-6-sol", &request, &azure)["max_completion_tokens"], 9);
    let body = request::body("gpt-6-sol", &request, &dialect);
    assert_eq!(
        (&body["reasoning_effort"], &body["max_completion_tokens"]),
        (&json!("none"), &json!(9))
    );
    assert!(body.get("tool_choice").is_none());
    let body = request::body("gpt-6-sol", &empty_request(&transcript), &dialect);
    assert!(body.get("reasoning_effort").is_none());
    let elsewhere =
        ChatDialect { max_output: Some(9), ..ChatDialect::for_model("gpt-6-sol", false) };
    let body = request::body("gpt-6-sol", &request, &elsewhere);
    assert_eq!((body.get("reasoning_effort"), &body["max_tokens"]), (None, &json!(9)));
}

#[test]
fn r065_r070_a_summary_is_context_and_an_old_result_is_a_placeholder() {
    let context = "[Context from the host, not a message from the user: a summary of the \
        conversation and the work so far. The summary already covers part of the work on the user \
        message that follows it.]\n\nIt began.\n\n[End of the summary.]";
    let call =
        json!({"id": "c_2", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let expected = json!([
        {"role": "user", "content": format!("{context}\n\nOne.")},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c_2", "content": crate::conversation::PRUNED_PLACEHOLDER},
        {"role": "user", "content": "Two."},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Three."},
    ]);
    assert_eq!(sent(&pruned_transcript(), &ChatDialect::default()), expected);
}
