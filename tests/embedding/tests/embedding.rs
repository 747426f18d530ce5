//! The example program works as its documentation says.

use std::process::Command;

use cofferdam_tests::guests::TestGuest;
use cofferdam_tests::wire::{Provider, call_reply, text_reply};
use serde_json::json;

#[test]
fn the_example_calls_a_tool_itself_and_lets_a_model_call_it() {
    let server = Provider::OpenAi.serve([
        call_reply("good", json!({"path": "from the model"})),
        text_reply("The tool answered."),
    ]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plugin = directory.path().join("good.wasm");
    std::fs::write(&plugin, TestGuest::from_file("good").component()).expect("a plugin file");
    let workspace = directory.path().join("workspace");
    std::fs::create_dir(&workspace).expect("a workspace");
    let output = Command::new(env!("CARGO_BIN_EXE_cofferdam-embedding"))
        .arg(&workspace)
        .arg(&plugin)
        .args(["good", &server.base_url()])
        .env("OPENAI_API_KEY", server.key())
        .output()
        .expect("the program starts");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stdout, "result: one call\nanswer: The tool answered.\n", "{stderr}");
}

#[test]
fn the_example_has_fewer_than_forty_lines() {
    assert!(include_str!("../src/main.rs").lines().count() < 40);
}
