//! What the model is sent back: everything, once, in order.

use cofferdam_tests::wire::{
    Provider, ProviderServer, ReceivedRequest, all_providers, both_providers, call_reply,
    empty_reply, text_reply,
};
use serde_json::{Value, json};

use super::new_home;

/// Three reads at once, a command, a submit, an answer.
fn server_with_every_event(provider: Provider) -> ProviderServer {
    provider.serve([
        empty_reply()
            .with_thinking("It could be anywhere.")
            .with_text("I look everywhere at once.\n")
            .with_call("read_file", json!({"path": "a.txt"}))
            .with_call("read_file", json!({"path": "sub/b.txt"}))
            .with_call("grep", json!({"pattern": "need.e"})),
        call_reply("bash", json!({"command": "cat a.txt sub/b.txt | wc -l"})),
        text_reply("That is all.").with_call("submit", json!({"summary": "Counted the lines."})),
        text_reply("There are **two** lines."),
    ])
}

fn recorded_requests(provider: Provider) -> Vec<ReceivedRequest> {
    let home = new_home().with_file("a.txt", "hay\n").with_file("sub/b.txt", "a needle\n");
    let server = server_with_every_event(provider);
    home.run_task(&server, &["--mode", "auto"]).expect_answer("There are **two** lines.");
    server.requests()
}

/// The body without what other tests look at: the system prompt and the tools' descriptions.
fn comparable_body(request: &ReceivedRequest) -> String {
    let mut body = request.body.clone();
    body["tools"] = request.tool_names().into();
    match request.provider {
        Provider::OpenAi => body["messages"][0]["content"] = "[system prompt]".into(),
        Provider::Anthropic => body["system"][0]["text"] = "[system prompt]".into(),
        Provider::Responses => body["instructions"] = "[system prompt]".into(),
    }
    format!("{body:#}")
}

#[test]
fn r081_the_whole_body_for_openai() {
    insta::assert_snapshot!(
        "openai",
        comparable_body(recorded_requests(Provider::OpenAi).last().expect("there are four"))
    );
}

#[test]
fn r081_the_whole_body_for_anthropic() {
    insta::assert_snapshot!(
        "anthropic",
        comparable_body(recorded_requests(Provider::Anthropic).last().expect("there are four"))
    );
}

#[test]
fn r009_r010_a_turn_adds_the_message_as_produced_and_one_result_for_each_call() {
    let requests = recorded_requests(Provider::OpenAi);
    let messages =
        |at: usize| requests[at].body["messages"].as_array().cloned().unwrap_or_default();
    for turn in 1..requests.len() {
        assert_eq!(messages(turn)[..messages(turn - 1).len()], messages(turn - 1));
    }
    let roles: Vec<Value> = messages(3).iter().map(|message| message["role"].clone()).collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "tool",
            "tool",
            "tool",
            "assistant",
            "tool",
            "assistant",
            "tool"
        ]
    );
    assert_eq!(messages(3)[2]["content"], "I look everywhere at once.\n");
}

#[test]
fn r009_thinking_goes_back_where_the_provider_needs_it() {
    let requests = recorded_requests(Provider::Anthropic);
    let first = &requests[3].body["messages"][1]["content"];
    let kinds: Vec<Value> =
        first.as_array().into_iter().flatten().map(|block| block["type"].clone()).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use", "tool_use"]);
    assert_eq!(
        first[0],
        json!({"type": "thinking", "thinking": "It could be anywhere.", "signature": "signature-1"})
    );
}

#[test]
fn r050_every_call_has_one_result_right_after_it() {
    for provider in both_providers() {
        let requests = recorded_requests(provider);
        let texts: Vec<Vec<String>> = requests
            .iter()
            .map(|request| request.tool_results().into_iter().map(|result| result.text).collect())
            .collect();
        let expected: [&[&str]; 4] = [
            &[],
            &["1\thay", "1\ta needle", "sub/b.txt:1:a needle"],
            &["2"],
            &["Submitted: Counted the lines."],
        ];
        assert_eq!(texts.len(), expected.len(), "{provider:?}");
        for (texts, expected) in texts.iter().zip(expected) {
            assert_eq!(
                texts.iter().map(|text| text.trim()).collect::<Vec<_>>(),
                expected,
                "{provider:?}"
            );
        }
    }
}

#[test]
fn r063_a_call_with_arguments_that_are_no_object_does_not_spoil_the_conversation() {
    for provider in all_providers() {
        let home = new_home();
        home.write_file("config/cofferdam/config.toml", provider.config(""));
        let bad = empty_reply()
            .with_raw_call("cut", "read_file", "{\"path\": \"a")
            .with_raw_call("two", "read_file", "{\"path\":\"a\"}{\"path\":\"b\"}")
            .with_raw_call("list", "read_file", "[1]");
        let server = provider.serve([bad, text_reply("I will do better.")]);
        home.run_task(&server, &[]).expect_answer("I will do better.");
        assert!(server.last_request().tool_results().iter().all(|result| result.is_error));
        drop(server);
        let server = provider.serve([text_reply("Gladly.")]);
        home.run_task(&server, &["--continue"]).expect_answer("Gladly.");
        assert_eq!(
            server.request().count_occurrences("unparsed_arguments"),
            3,
            "{provider:?}: what the model wrote is there"
        );
    }
}

#[test]
fn r021_ids_go_back_as_they_came_to_those_who_read_the_tool_from_them() {
    for provider in all_providers() {
        let home = new_home().with_file("a.txt", "hay\n");
        home.write_file("config/cofferdam/config.toml", provider.config(""));
        let read = r#"{"path": "a.txt"}"#;
        let two = empty_reply()
            .with_raw_call("functions.read_file:0", "read_file", read)
            .with_raw_call("functions.read_file:1", "read_file", read);
        let server = provider.serve([two, text_reply("Hay.")]);
        home.run_task(&server, &[]).expect_answer("Hay.");
        // Anthropic takes fewer characters; what is readable stays, and a digest tells the ids
        // apart.
        let ids = ["0", "1"].map(|n| match provider {
            Provider::Anthropic => format!("\"functions_read_file_{n}_"),
            Provider::OpenAi | Provider::Responses => format!("\"functions.read_file:{n}\""),
        });
        let body = server.last_request().body.to_string();
        for id in ids {
            assert_eq!(
                body.matches(&id).count(),
                2,
                "{provider:?}: {id} of the call and of its result"
            );
        }
    }
}

#[test]
fn r055_the_users_words_stand_once_and_results_are_no_words_of_theirs() {
    for provider in both_providers() {
        for request in recorded_requests(provider) {
            assert_eq!(request.user_texts(), ["The task."], "{provider:?}");
        }
    }
}

#[test]
fn r093_the_system_prompt_names_the_place_the_order_and_the_guide() {
    for provider in both_providers() {
        let home = new_home().with_file("AGENTS.md", "Indent with tabs.\n");
        let server = provider
            .serve([call_reply("read_file", json!({"path": "AGENTS.md"})), text_reply("Read.")]);
        home.run_task(&server, &[]).expect_answer("Read.");
        let workspace = home.workspace().canonicalize().expect("it is there");
        for request in server.requests() {
            let system = request.system_prompt();
            for part in [
                &*workspace.to_string_lossy(),
                std::env::consts::OS,
                "a read that you place after a write",
                "Indent with tabs.",
            ] {
                assert!(system.contains(part), "{part:?} is not in {system}");
            }
        }
    }
}

#[test]
fn r092_tools_come_in_a_stable_order() {
    let tools = |provider| {
        recorded_requests(provider).iter().map(ReceivedRequest::tool_names).collect::<Vec<_>>()
    };
    let all: Vec<Vec<String>> = both_providers().into_iter().flat_map(tools).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
}

#[test]
fn r093_a_guide_in_another_encoding_or_of_any_size_is_not_passed_over() {
    for provider in both_providers() {
        let latin = new_home().with_file("AGENTS.md", b"Indent with tabs, please. Gr\xfc\xdfe.\n");
        let server = provider.serve([text_reply("Read.")]);
        latin.run_task(&server, &[]).expect_answer("Read.");
        assert!(
            server
                .request()
                .system_prompt()
                .contains("Indent with tabs, please. Gr\u{fffd}\u{fffd}e."),
            "{}",
            server.request().system_prompt()
        );

        let long = new_home().with_file(
            "AGENTS.md",
            format!("Indent with tabs.\n{}the end\n", "Be careful.\n".repeat(6_000)),
        );
        let server = provider.serve([text_reply("Read.")]);
        let ran =
            long.start(long.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        ran.expect_answer("Read.");
        let system = server.request().system_prompt();
        assert!(system.contains("Indent with tabs.\nBe careful.") && !system.contains("the end"));
        assert!(
            system.contains("Be careful.\n\n(AGENTS.md is longer; only its beginning is shown.)"),
            "it is cut after a line"
        );
        let told = ran.json_lines().iter().any(|line| {
            line["type"] == "notice"
                && line["text"].to_string().contains("AGENTS.md is larger than 64 KiB")
        });
        assert!(told, "{ran:?}");
    }
}

#[test]
fn r093_r123_a_guide_that_is_a_link_to_what_is_hidden_goes_to_no_provider() {
    let home = new_home().with_file(".env", "DB_PASSWORD=hunter2\n");
    std::os::unix::fs::symlink(".env", home.workspace().join("AGENTS.md")).expect("a link");
    let provider = Provider::Anthropic;
    let server = provider.serve([text_reply("Read.")]);
    let ran = home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
    ran.expect_answer("Read.");
    assert!(!server.request().body.to_string().contains("hunter2"));
    let told = |line: &serde_json::Value| {
        line["type"] == "notice" && line["text"].to_string().contains("cannot read AGENTS.md")
    };
    assert!(ran.json_lines().iter().any(told), "{ran:?}");
}

#[test]
fn r057_the_present_system_prompt_goes_out_once_with_each_request_and_is_stored_nowhere() {
    for provider in both_providers() {
        let home =
            new_home().with_file("a.txt", "x").with_file("AGENTS.md", "Mind the zirconium.\n");
        let read = || call_reply("read_file", json!({"path": "a.txt"}));
        let first = provider.serve([read(), text_reply("Done.")]);
        home.run_task(&first, &[]).expect_answer("Done.");
        home.write_file("workspace/AGENTS.md", "Mind the cadmium.\n");
        let second = provider.serve([read(), text_reply("Again.")]);
        home.run_task(&second, &["--continue"]).expect_answer("Again.");
        for (server, there, gone) in
            [(&first, "zirconium", "cadmium"), (&second, "cadmium", "zirconium")]
        {
            for request in server.requests() {
                assert!(
                    request.system_prompt().contains(there),
                    "{provider:?}: {}",
                    request.system_prompt()
                );
                assert_eq!(
                    (request.count_occurrences(there), request.count_occurrences(gone)),
                    (1, 0),
                    "{provider:?}: {:#}",
                    request.body
                );
            }
        }
        let sessions = home.path().join("state/cofferdam/sessions");
        let folders = std::fs::read_dir(sessions).expect("there is one").flatten();
        let files: Vec<_> = folders
            .flat_map(|folder| std::fs::read_dir(folder.path()).expect("readable").flatten())
            .collect();
        let [journal] = &files[..] else { panic!("{files:?}") };
        let text = std::fs::read_to_string(journal.path()).expect("readable");
        assert!(
            text.contains("Again.") && !text.contains("zirconium") && !text.contains("cadmium"),
            "{text}"
        );
    }
}
