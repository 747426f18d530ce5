use serde_json::{Value, json};

use super::super::test_log::{call_end, call_identity, write_effect};
use super::*;
use crate::policy::{DenialCode, HostAddress};

fn redact(text: &str) -> String {
    text.replace("sk-secret-of-many-characters", "[key redacted]")
}

#[test]
fn opened_paths_are_recorded_and_omitted_ones_are_counted() {
    let mut call = call_end(&[]);
    let fields = |call: &tools::FinishedCallRecord| {
        super::encode_call_end(&call_identity(), call, &redact).to_fields()
    };
    assert_eq!(
        (&fields(&call)["touched"], &fields(&call)["contacted"]),
        (&Value::Null, &Value::Null)
    );
    call.touched.walked.insert(String::new());
    call.touched.written.extend((0..MAX_PATHS + 5).map(|n| format!("{n:03}")));
    call.touched.omitted = 2;
    let host = HostAddress::parse("docs.rs").expect("a host");
    let address = "192.0.2.7:443".parse().ok();
    call.contacts.requests.push(tools::HttpContact {
        method: "GET".into(),
        host,
        address,
        status: Some(200),
    });
    let fields = fields(&call);
    assert_eq!(fields["touched"]["written"].as_array().map(Vec::len), Some(MAX_PATHS));
    assert_eq!(fields["touched"]["read"], json!([]));
    assert_eq!(fields["touched"]["walked"], json!(["."]));
    assert_eq!(fields["touched"]["more"], 7);
    let contact =
        json!({"method": "GET", "host": "docs.rs", "address": "192.0.2.7:443", "status": 200});
    assert_eq!(fields["contacted"], json!({"requests": [contact], "more": 0}));
}

#[test]
fn r114_a_key_at_the_cut_is_redacted_completely() {
    for before in MAX_DENIED_BYTES - 40..MAX_DENIED_BYTES + 5 {
        let line = format!("echo {}sk-secret-of-many-characters", "x".repeat(before - 5));
        let effect = policy::Effect::Command {
            line,
            directory: policy::WorkspacePath::parse("", None).expect("a path"),
            background: false,
        };
        let ruled =
            RecordedOutcome::Denied(Denial::without_remedy(DenialCode::Mode, "not in this mode."));
        let text = format!(
            "{:?}",
            encode_decision(
                &call_identity(),
                &DecisionRecord { effect, outcome: ruled, waited: std::time::Duration::ZERO },
                &redact
            )
        );
        assert!(!text.contains("sk-sec"), "{before}: {text}");
    }
    let name = format!("{}sk-secret-of-many-characters", "x".repeat(MAX_TEXT_BYTES - 10));
    let call =
        ToolCall { id: crate::conversation::CallId::new("c"), name, arguments: String::new() };
    assert!(!format!("{:?}", encode_refusal(&call, "no such tool", &redact)).contains("sk-"));
}

#[test]
fn a_write_is_recorded_without_file_contents() {
    let long = "d/".repeat(600) + "a";
    let mut paths = vec![long.clone(), "b".to_owned()];
    paths.extend((0..MAX_PATHS).map(|n| format!("c/{n:03}")));
    let decided = DecisionRecord {
        effect: write_effect(&paths),
        ..super::super::test_log::allowed_command("")
    };
    let fields = super::encode_decision(&call_identity(), &decided, &redact).to_fields();
    assert_eq!(fields["effect"]["more"], 2);
    let changes = fields["effect"]["changes"].as_array().expect("a list");
    assert_eq!(
        changes[0],
        json!({"act": "modify", "path": "b", "before": 1, "size": 2, "sha256": "0".repeat(64)})
    );
    let text = serde_json::to_string(&fields).expect("it is JSON");
    assert!(!text.contains("the content") && text.len() < 100 << 10, "{} bytes", text.len());
    assert!(changes.iter().all(|change| {
        change["path"].as_str().is_some_and(|path| path.len() < MAX_PATH_BYTES + 30)
    }));
}
