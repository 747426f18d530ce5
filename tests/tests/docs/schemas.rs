//! The JSON Schemas in `host/docs/reference/schemas`: documents that they accept and reject.
//!
//! `schema_keys.rs` compares their keys with those of the program.

use std::collections::BTreeSet;

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{Provider, call_reply, error_reply, text_reply};
use jsonschema::Validator;
use serde_json::{Value, json};

use super::markdown::{Part, parts};
use super::{PROGRAM, name, pages, read, root};

/// Returns the schema with this name, such as `config`.
pub(crate) fn schema(name: &str) -> Value {
    let path = root().join(format!("host/docs/reference/schemas/{name}.schema.json"));
    serde_json::from_str(&read(&path)).expect("a schema is JSON")
}

pub(crate) fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::meta::validate(schema).expect("a schema of draft 2020-12");
    jsonschema::draft202012::new(schema).expect("a valid schema")
}

pub(crate) fn parse_toml(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).expect("TOML");
    serde_json::to_value(table).expect("it has no dates")
}

fn errors(validator: &Validator, document: &Value) -> Vec<String> {
    let format =
        |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    validator.iter_errors(document).map(format).collect()
}

/// Requires that a document is valid.
fn assert_valid(validator: &Validator, what: &str, document: &Value) {
    let errors = errors(validator, document);
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{document:#}");
}

#[test]
fn the_schemas_accept_every_example_of_the_pages() {
    let [config, policy, cases] =
        ["config", "policy", "cases"].map(|name| validator(&schema(name)));
    let mut counts = [0; 3];
    for page in pages() {
        for part in parts(&read(&page)) {
            let Part::Block(block) = part else { continue };
            let (what, body) = (format!("{}:{}", name(&page), block.line), block.body.join("\n"));
            match (block.info.as_str(), page.ends_with("reference/cases.md")) {
                ("toml config", _) => {
                    counts[0] += 1;
                    assert_valid(&config, &what, &parse_toml(&body));
                }
                ("toml policy", _) => {
                    counts[1] += 1;
                    assert_valid(&policy, &what, &parse_toml(&body));
                }
                ("json", true) => {
                    counts[2] += 1;
                    let document = serde_json::from_str(&body).expect("JSON");
                    assert_valid(&cases, &what, &document);
                }
                _ => {}
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 0), "examples of each kind: {counts:?}");
}

#[test]
fn the_schemas_accept_the_profiles_and_the_cases_of_the_sdk() {
    let policy = validator(&schema("policy"));
    for profile in ["develop", "read-only", "locked-down"] {
        let text = read(&root().join(format!("host/policy/profiles/{profile}.toml")));
        assert_valid(&policy, profile, &parse_toml(&text));
    }
    let cases = serde_json::from_str(&read(&root().join("sdk/cases.json"))).expect("JSON");
    assert_valid(&validator(&schema("cases")), "sdk/cases.json", &cases);
}

#[test]
fn the_schema_and_the_program_reject_the_same_cases() {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR")).with_file("x.wasm", "");
    let validator = validator(&schema("cases"));
    let case = |more: Value| {
        let mut case = json!({"says": "a", "tool": "b", "input": {}});
        let fields = more.as_object().expect("an object").clone();
        case.as_object_mut().expect("an object").extend(fields);
        case
    };
    // The program reads the cases before the component, which is not one.
    let program_accepts = |case: &Value| {
        home.write_file("workspace/cases.json", json!([case]).to_string());
        let ran = home.run(&["plugin", "test", "x.wasm", "--cases", "cases.json"]);
        !ran.stderr.contains("cases.json")
    };
    let bytes = json!({"base64": "AA=="});
    let valid = [
        json!({}),
        json!({"files": {"a/b": "x", "c": bytes}, "leaves": {"a": "x"}, "with": ["x"]}),
        json!({"answers": "x"}),
        json!({"answers": null, "fails": "timed-out"}),
    ];
    for more in valid {
        let case = case(more);
        assert_valid(&validator, "a case", &json!([case]));
        assert!(program_accepts(&case), "{case}");
    }
    let invalid = [
        json!({"unknown": 1}),
        json!({"says": null}),
        json!({"input": []}),
        json!({"answers": "x", "fails": "failed"}),
        json!({"fails": "crashed"}),
        json!({"with": "x"}),
        json!({"files": {"../a": "x"}}),
        json!({"files": {"./a": "x"}}),
        json!({"leaves": {"/a": "x"}}),
        json!({"files": {"a": {"base64": 1}}}),
    ];
    for more in invalid {
        let case = case(more);
        assert!(!validator.is_valid(&json!([case])), "{case}");
        assert!(!program_accepts(&case), "{case}");
    }
    // The error for an unknown key lists all keys.
    home.write_file("workspace/cases.json", json!([case(json!({"unknown": 1}))]).to_string());
    let ran = home.run(&["plugin", "test", "x.wasm", "--cases", "cases.json"]);
    let known: BTreeSet<String> = super::schema_keys::expected_names(&ran.stderr);
    let keys = schema("cases")["$defs"]["case"]["properties"].as_object().expect("keys").clone();
    assert_eq!(known, keys.into_iter().map(|(key, _)| key).collect());
}

/// Makes every object of a schema reject properties that it does not list.
fn forbid_other_properties(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(forbid_other_properties);
            if fields.get("properties").is_some_and(|properties| {
                properties.as_object().is_some_and(|known| !known.contains_key("properties"))
            }) {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(values) => values.iter_mut().for_each(forbid_other_properties),
        _ => {}
    }
}

#[test]
fn the_output_of_the_program_has_exactly_the_fields_of_the_schema() {
    let mut schema = schema("output");
    forbid_other_properties(&mut schema);
    let validator = validator(&schema);
    let new_home = || {
        let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR")).with_file("a.txt", "hay\n");
        home.with_file(".env", "KEY=1\n")
    };
    let mut seen = BTreeSet::new();
    for format in ["json", "stream-json"] {
        let replies = [
            error_reply(503, "overloaded", "Wait."),
            text_reply("I look.").with_call("read_file", json!({"path": "a.txt"})),
            call_reply("read_file", json!({"path": ".env"})),
            call_reply("no_such_tool", json!({})),
            call_reply("write_file", json!({"path": "b.txt", "content": "x\n"})),
            call_reply("bash", json!({"command": "exit 3"})),
            text_reply("Done."),
        ];
        let server = Provider::Anthropic.serve(replies);
        let home = new_home();
        let args = ["--output", format, "--mode", "auto"];
        let ran = home.start(home.model_command(&server, &args)).wait_for_exit();
        ran.expect_outcome("answered", 0);
        let not_started = new_home().run(&["run", "", "--output", format]);
        let wrong_usage = new_home().run(&["run", "--output", format, "--no-such-option"]);
        for line in [ran, not_started, wrong_usage].iter().flat_map(|ran| ran.json_lines()) {
            assert_valid(&validator, format, &line);
            let kind = line["type"].as_str().expect("a type").to_owned();
            // The type selects the part of the schema.
            let part = json!({"$ref": format!("#/$defs/{kind}"), "$defs": schema["$defs"]});
            let part = jsonschema::draft202012::new(&part).expect("a valid schema");
            assert_valid(&part, &kind, &line);
            seen.insert(kind);
        }
    }
    let expected = [
        "request_started",
        "turn_started",
        "text",
        "retry",
        "call_started",
        "call_finished",
        "result",
    ];
    for kind in expected {
        assert!(seen.contains(kind), "{kind} is not among {seen:?}");
    }
}

#[test]
fn the_output_schema_has_the_events_of_the_program_and_of_the_page() {
    let schema = schema("output");
    let listed: BTreeSet<String> = schema["anyOf"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|part| part["$ref"].as_str()?.strip_prefix("#/$defs/"))
        .map(str::to_owned)
        .collect();
    for kind in &listed {
        assert_eq!(schema["$defs"][kind]["properties"]["type"]["const"], kind.as_str());
    }
    let source = read(&root().join("host/cli/src/render/json.rs"));
    let in_source = source.split("\"type\": \"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut in_program: BTreeSet<String> = in_source.map(str::to_owned).collect();
    in_program.insert("result".to_owned());
    assert_eq!(listed, in_program);
    let page = read(&root().join("host/docs/reference/output.md"));
    let events = page.split("## Events").nth(1).expect("a section about events");
    let in_page: BTreeSet<String> = events
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next())
        .flat_map(|cell| cell.split(", ").map(|kind| kind.trim_matches('`').to_owned()))
        .collect();
    assert_eq!(listed, in_page);
}
