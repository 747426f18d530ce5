//! Schemas and arguments that ask for gigabytes or hours: both are written by somebody who is not
//! trusted.

use std::time::{Duration, Instant};

use cofferdam::tools::builtin_components;
use cofferdam::tools::fuzzing::{FuzzedCheck, check_arguments};
use cofferdam_tests::memory_limit;
use serde_json::{Value, json};

/// What the largest arguments take to read, and a good part more.
const MEMORY_LIMIT: u64 = 192 << 20;
/// What any check may take on a busy machine, in a build that is not optimised.
const TIMEOUT: Duration = Duration::from_secs(20);

fn schema_for_x(x: &Value) -> String {
    json!({"type": "object", "properties": {"x": x}}).to_string()
}

fn arguments_with_x(x: &Value) -> String {
    json!({"x": x}).to_string()
}

fn nested_list(item: &str, items: usize) -> String {
    format!(r#"{{"x":[{}]}}"#, vec![item; items].join(","))
}

/// Checks arguments in little memory, and tells how it ended.
fn check_with_limit(what: &str, schema: &str, arguments: &str) -> FuzzedCheck {
    let started = Instant::now();
    let checked = check_arguments(schema, arguments);
    assert!(started.elapsed() < TIMEOUT, "{what}: {:?}", started.elapsed());
    checked
}

fn assert_invalid(what: &str, checked: &FuzzedCheck, words: &str) {
    match checked {
        FuzzedCheck::InvalidSchema(problem) | FuzzedCheck::Invalid(problem) => {
            assert!(problem.contains(words), "{what}: {problem}")
        }
        FuzzedCheck::Valid(_) => panic!("{what} fits"),
    }
}

#[test]
fn r022_many_branches_and_many_values_take_little_memory() {
    if !memory_limit::run_with_limit(
        MEMORY_LIMIT,
        "arguments::r022_many_branches_and_many_values_take_little_memory",
    ) {
        return;
    }
    let branches: Vec<Value> = (0..4001).map(|n| json!({"minimum": 2 + n % 8})).collect();
    let schema = schema_for_x(&json!({"type": "array", "items": {"anyOf": branches}}));
    for (values, words) in [
        (2, "is not valid under any"),
        (300, "are too large to list the problems"),
        (4_000, "do not match the input schema"),
        (60_000, "too large to validate"),
    ] {
        assert_invalid(
            &format!("{values} values"),
            &check_with_limit("anyOf", &schema, &nested_list("1", values)),
            words,
        );
    }
    // The schema is fine where the arguments are.
    assert_eq!(check_with_limit("anyOf", &schema, &nested_list("10", 300)), FuzzedCheck::Valid(0));
}

#[test]
fn r022_a_built_in_tool_takes_little_memory() {
    if !memory_limit::run_with_limit(
        MEMORY_LIMIT,
        "arguments::r022_a_built_in_tool_takes_little_memory",
    ) {
        return;
    }
    let (_, todo) = builtin_components().find(|(name, _)| *name == "todo").expect("it is built in");
    let schema =
        todo.declaration().expect("it is part of the program").tools[0].input_schema.to_string();
    let items = |count: usize| format!(r#"{{"items":[{}]}}"#, vec!["{}"; count].join(","));
    assert_invalid(
        "two million",
        &check_with_limit("todo", &schema, &items(2_000_000)),
        "have about 4000003 JSON values",
    );
    assert_invalid(
        "forty thousand",
        &check_with_limit("todo", &schema, &items(40_000)),
        "do not match the input schema",
    );
    assert_invalid("two", &check_with_limit("todo", &schema, &items(2)), "at /items/0");
}

#[test]
fn r022_every_keyword_takes_little_memory_and_time() {
    if !memory_limit::run_with_limit(
        MEMORY_LIMIT,
        "arguments::r022_every_keyword_takes_little_memory_and_time",
    ) {
        return;
    }
    let megabytes = "y".repeat(5 << 20);
    let texts = vec!["y"; 90_000];
    let many = |part: &dyn Fn(usize) -> Value, parts: usize| -> Vec<Value> {
        (0..parts).map(part).collect()
    };
    let nested = |word: &str| {
        (0..20).fold(json!({"minimum": 7}), |inner, n| json!({word: [inner, {"maximum": -1 - n}]}))
    };
    let unlike = distinct_lists(20_000);
    let table: [(&str, String, String); 13] = [
        (
            "contains, a long list",
            schema_for_x(&json!({"contains": {"const": 1}})),
            arguments_with_x(&json!(texts)),
        ),
        (
            "contains, a long text",
            schema_for_x(&json!({"contains": {"const": 1}})),
            arguments_with_x(&json!([megabytes])),
        ),
        (
            "contains, often",
            schema_for_x(&json!({"anyOf": many(&|n| json!({"contains": {"const": n}}), 2_000)})),
            arguments_with_x(&json!(vec!["y"; 2_000])),
        ),
        (
            "a long text, often",
            schema_for_x(&json!({"anyOf": many(&|n| json!({"minLength": (8 << 20) + n}), 2_000)})),
            arguments_with_x(&json!(megabytes)),
        ),
        (
            "a long constant",
            schema_for_x(&json!({"items": {"const": "y".repeat(60_000)}})),
            arguments_with_x(&json!(texts)),
        ),
        (
            "a long list of choices",
            schema_for_x(&json!({"items": {"enum": many(&|n| json!(n), 9_000)}})),
            arguments_with_x(&json!(vec!["y"; 5_000])),
        ),
        (
            "long keys",
            schema_for_x(&json!({"type": "string"})),
            json!({"x": {megabytes.clone(): vec![0; 50_000]}}).to_string(),
        ),
        (
            "long keys, each wrong",
            schema_for_x(&json!({"additionalProperties": {"items": {"type": "string"}}})),
            json!({"x": {megabytes.clone(): vec![0; 50_000]}}).to_string(),
        ),
        (
            "branches in branches",
            schema_for_x(&json!({"items": {"items": nested("anyOf")}})),
            arguments_with_x(&json!(vec![vec![5; 90]; 900])),
        ),
        (
            "one of branches",
            schema_for_x(&json!({"items": nested("oneOf")})),
            arguments_with_x(&json!(vec![5; 50_000])),
        ),
        (
            "names",
            schema_for_x(
                &json!({"propertyNames": {"anyOf": many(&|n| json!({"const": n}), 3_000)}}),
            ),
            {
                let keys: serde_json::Map<String, Value> =
                    (0..10_000).map(|n| (n.to_string(), Value::Null)).collect();
                arguments_with_x(&keys.into())
            },
        ),
        (
            "lists that must differ",
            schema_for_x(&json!({"uniqueItems": true, "maxItems": 1})),
            arguments_with_x(&json!(unlike)),
        ),
        (
            "required, often",
            schema_for_x(&json!({"items": {"required": many(&|n| json!(n.to_string()), 5_000)}})),
            arguments_with_x(&json!(vec![json!({}); 3_000])),
        ),
    ];
    for (what, schema, arguments) in table {
        let checked = check_with_limit(what, &schema, &arguments);
        assert!(matches!(checked, FuzzedCheck::Invalid(_)), "{what}: {checked:?}");
    }
}

#[test]
fn r022_a_schema_that_multiplies_is_not_taken() {
    if !memory_limit::run_with_limit(
        MEMORY_LIMIT,
        "arguments::r022_a_schema_that_multiplies_is_not_taken",
    ) {
        return;
    }
    let again = |levels: usize| {
        (0..levels).fold(
            json!({"properties": {"a": {}}}),
            |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
        )
    };
    assert_invalid(
        "25 levels",
        &check_with_limit("unevaluated", &schema_for_x(&again(25)), r#"{"x":{"a":1}}"#),
        "more than 20000 parts",
    );
    assert_eq!(
        check_with_limit("unevaluated", &schema_for_x(&again(3)), r#"{"x":{"a":1}}"#),
        FuzzedCheck::Valid(0)
    );
    let controls = schema_for_x(&json!({"pattern": r"\cA".repeat(15_000)}));
    assert_invalid(
        "controls",
        &check_with_limit("controls", &controls, r#"{"x":"a"}"#),
        "more than 4096 bytes",
    );
    let classes: Vec<Value> =
        (0..250).map(|n| json!({"pattern": format!(r"\p{{L}}{{9}}{n}")})).collect();
    assert_invalid(
        "classes",
        &check_with_limit("classes", &schema_for_x(&json!({"anyOf": classes})), r#"{"x":"a"}"#),
        "50000 states",
    );
}

#[test]
fn r022_the_largest_schema_is_prepared_in_little_memory() {
    if !memory_limit::run_with_limit(
        MEMORY_LIMIT,
        "arguments::r022_the_largest_schema_is_prepared_in_little_memory",
    ) {
        return;
    }
    let table: [(&str, Value); 5] = [
        ("branches", json!({"anyOf": vec![json!({"minimum": 1}); 4_000]})),
        ("properties", {
            let properties: serde_json::Map<String, Value> =
                (0..2_000).map(|n| (n.to_string(), json!({"$ref": "#/a"}))).collect();
            json!({"properties": properties})
        }),
        ("patterns", {
            let pattern = |n: i32| format!(r"^[a-z]{{1,9}}(-\w{{{}}})$", n % 90);
            let branches: Vec<Value> =
                (0..250).map(|n| json!({"pattern": pattern(n)})).collect();
            json!({"anyOf": branches})
        }),
        ("properties with patterns", {
            let properties: serde_json::Map<String, Value> = (0..250)
                .map(|n| (format!("^[01]*1[01]{{{}}}", n % 80), json!({})))
                .collect();
            json!({"patternProperties": properties})
        }),
        (
            "conditions",
            (0..8).fold(json!({}), |inner, _| {
                json!({"if": inner, "then": {"type": "object"}, "unevaluatedItems": false})
            }),
        ),
    ];
    for (what, x) in table {
        let schema = json!({
            "type": "object", "a": {"type": "string", "minLength": 1}, "properties": {"x": x},
        })
        .to_string();
        assert!(schema.len() <= 64 << 10, "{what}: {}", schema.len());
        for arguments in [
            "{}".to_owned(),
            arguments_with_x(&json!("01".repeat(2_000))),
            arguments_with_x(&json!({"01".repeat(400): 1})),
        ] {
            let checked = check_with_limit(what, &schema, &arguments);
            assert!(!matches!(checked, FuzzedCheck::InvalidSchema(_)), "{what}: {checked:?}");
        }
    }
}

/// Lists that differ in their brackets alone: as texts they are short, and a hash of what is in
/// them is that of nothing.
fn distinct_lists(count: usize) -> Vec<Value> {
    (0..count)
        .map(|number| {
            (0..15).filter(|bit| number >> bit & 1 == 1).fold(json!([]), |list, bit| {
                if bit % 2 == 0 { json!([list]) } else { json!([list, []]) }
            })
        })
        .take_while(|_| true)
        .collect()
}
