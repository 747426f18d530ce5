//! The keys of the schemas for the configuration and for policies are those of the parsers.
//!
//! A parser lists all keys of a section in its error for an unknown key, so the tests need no list.

use std::collections::BTreeSet;
use std::path::Path;

use cofferdam::config::RawConfig;
use cofferdam::policy::{CapName, Caps, PolicyLayer, PolicyLevel};
use cofferdam_tests::program::TestHome;
use serde_json::{Map, Value, json};

use super::PROGRAM;
use super::schemas::{parse_toml, schema, validator};

/// A key that no section has.
const UNKNOWN: &str = "no-such-key";

/// A parser, and the schema that describes the same files.
struct ParserSchema {
    schema: Value,
    parse: fn(&str) -> Result<(), String>,
}

fn config() -> ParserSchema {
    let parse = |text: &str| {
        RawConfig::parse(text, Path::new("/c/config.toml"), None)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    ParserSchema { schema: schema("config"), parse }
}

fn policy() -> ParserSchema {
    let parse = |text: &str| {
        PolicyLayer::parse(PolicyLevel::User, "policy.toml", text)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    ParserSchema { schema: schema("policy"), parse }
}

/// Returns the names that the error for an unknown name lists.
pub(crate) fn expected_names(error: &str) -> BTreeSet<String> {
    let (_, names) = error.split_once("expected ").expect("the error lists what it expects");
    let names = names.lines().next().unwrap_or_default();
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A table, or a list of tables, that a schema describes with its keys.
struct SchemaTable {
    /// The keys that lead to the table.
    path: Vec<String>,
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl ParserSchema {
    /// Returns a schema, or what its reference leads to.
    fn follow<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        match reference {
            Some(pointer) => self.schema.pointer(pointer).expect("a reference leads to a part"),
            None => schema,
        }
    }

    fn tables(&self) -> Vec<SchemaTable> {
        let mut tables = Vec::new();
        self.collect_tables(&self.schema, &mut Vec::new(), &mut tables);
        tables
    }

    fn collect_tables(
        &self,
        schema: &Value,
        path: &mut Vec<String>,
        tables: &mut Vec<SchemaTable>,
    ) {
        let schema = self.follow(schema);
        if let Some(properties) = schema["properties"].as_object() {
            assert_eq!(schema["additionalProperties"], json!(false), "{path:?}");
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let required = required.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let table =
                SchemaTable { path: path.clone(), properties: properties.clone(), required };
            tables.push(table);
            for (key, schema) in properties {
                path.push(key.clone());
                self.collect_tables(schema, path, tables);
                path.pop();
            }
        } else if let Some(options) = schema["anyOf"].as_array() {
            for option in options.iter().filter(|option| option["properties"].is_object()) {
                self.collect_tables(option, path, tables);
            }
        } else if schema["additionalProperties"].is_object() {
            // The name of a tool or the pattern of a host.
            path.push("example".to_owned());
            self.collect_tables(&schema["additionalProperties"], path, tables);
            path.pop();
        }
    }

    /// Values that fit a schema: all of an enumeration, the bounds of a number, or the examples.
    fn fitting_values(&self, schema: &Value) -> Vec<Value> {
        let schema = self.follow(schema);
        let list = |key: &str| schema[key].as_array().cloned().unwrap_or_default();
        let mut values = [list("enum"), list("examples")].concat();
        if schema["type"] == "boolean" {
            values.extend([json!(true), json!(false)]);
        }
        let bounds = ["minimum", "maximum"].map(|bound| schema[bound].clone());
        values.extend(bounds.into_iter().filter(Value::is_number));
        let items = self.follow(&schema["items"]);
        let items = items["enum"].as_array().cloned().unwrap_or_default();
        values.extend(items.into_iter().map(|item| json!([item])));
        values
    }

    /// Requires that the parser and the schema agree about a document.
    fn check(&self, document: &Value, is_valid: bool) {
        let text = toml::to_string(document).expect("it can be written as TOML");
        assert_eq!(parse_toml(&text), *document);
        assert_eq!(validator(&self.schema).is_valid(document), is_valid, "the schema:\n{text}");
        let parsed = (self.parse)(&text);
        assert_eq!(parsed.is_ok(), is_valid, "the parser:\n{text}{parsed:?}");
    }

    fn check_all_keys(&self) {
        for table in self.tables() {
            // The keys that the parser knows.
            let unknown = table.document(UNKNOWN, json!(1));
            self.check(&unknown, false);
            let text = toml::to_string(&unknown).expect("it can be written as TOML");
            let error = (self.parse)(&text).expect_err("an unknown key");
            let keys: BTreeSet<String> = table.properties.keys().cloned().collect();
            assert_eq!(expected_names(&error), keys, "{:?}", table.path);
            // The values that it takes.
            for (key, schema) in &table.properties {
                let schema = self.follow(schema);
                let is_table = schema["type"] == "object";
                let values = self.fitting_values(schema);
                assert!(is_table || !values.is_empty(), "{key} of {:?} has no value", table.path);
                let wrong = if values.contains(&json!(true)) { json!("x") } else { json!(true) };
                for value in values {
                    self.check(&table.document(key, value), true);
                }
                self.check(&table.document(key, wrong), false);
                if schema["enum"].is_array() {
                    self.check(&table.document(key, json!(UNKNOWN)), false);
                }
                if schema["type"] == "array" {
                    self.check(&table.document(key, json!([true])), false);
                }
                if self.follow(&schema["items"])["enum"].is_array() {
                    self.check(&table.document(key, json!([UNKNOWN])), false);
                }
            }
        }
    }
}

impl SchemaTable {
    /// Returns a document with this table, its required keys and one key more.
    fn document(&self, key: &str, value: Value) -> Value {
        let mut table: Map<String, Value> =
            self.required.iter().map(|key| (key.clone(), json!("X"))).collect();
        table.insert(key.to_owned(), value);
        let wrap = |inner: Value, key: &String| json!({ key.as_str(): inner });
        self.path.iter().rev().fold(Value::Object(table), wrap)
    }
}

#[test]
fn the_schema_of_the_configuration_has_the_keys_of_the_parser() {
    config().check_all_keys();
}

#[test]
fn the_schema_of_policies_has_the_keys_of_the_parser() {
    policy().check_all_keys();
}

#[test]
fn tables_in_lists_of_rules_have_the_keys_of_the_parser() {
    let policy = policy();
    let rule = |section: &str, key: &str, value: Value| {
        let mut rule = json!({"pattern": "x", "match": ["x"], "not-match": ["y"]});
        rule[key] = value;
        json!({section: {"deny": [rule]}})
    };
    let error = (policy.parse)("[write]\ndeny = [{ pattern = \"x\", no-such-key = 1 }]");
    let names = expected_names(&error.expect_err("an unknown key"));
    let keys = |name: &str| -> BTreeSet<String> {
        let table = &policy.schema["$defs"][name]["anyOf"][1];
        table["properties"].as_object().expect("a table").keys().cloned().collect()
    };
    assert_eq!(names, &keys("fetchRule") | &keys("commandRule"));
    for section in ["commands", "read", "write", "fetch"] {
        policy.check(&rule(section, "pattern", json!("x")), true);
        policy.check(&rule(section, "no-such-key", json!(1)), false);
        policy.check(&rule(section, "tool", json!("bash")), section != "read");
        policy.check(&rule(section, "methods", json!(["GET"])), section == "fetch");
        policy.check(&rule(section, "writes", json!(true)), false);
        policy.check(&json!({section: {"deny": [{"match": ["x"]}]}}), false);
    }
    for (section, is_valid) in [("commands", true), ("write", false), ("fetch", false)] {
        let rule = json!({section: {"allow": [{"pattern": "x", "writes": false}]}});
        policy.check(&rule, is_valid);
    }
}

#[test]
fn numbers_of_the_configuration_have_the_bounds_of_the_program() {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    let config = config();
    let validator = validator(&config.schema);
    let mut count = 0;
    for table in config.tables() {
        // The test below covers the limits of tool calls.
        let is_limits = table.path.last().is_some_and(|key| key == "limits");
        for (key, schema) in table.properties.iter().filter(|_| !is_limits) {
            let lowest = schema["minimum"].as_i64();
            let highest = schema["maximum"].as_i64();
            let values = [lowest, lowest.map(|n| n - 1), highest.map(|n| n + 1)];
            for value in values.into_iter().flatten() {
                let mut document = table.document(key, json!(value));
                if table.path.iter().any(|name| name == "servers") {
                    // A server has a program or a URL, whose keys differ.
                    let is_http = key == "callback_port";
                    let kind = if is_http { "url" } else { "command" };
                    document["mcp"]["servers"]["example"][kind] = json!("https://example.com/");
                }
                let text = toml::to_string(&document).expect("it can be written as TOML");
                home.write_file("config.toml", &text);
                let ran = home.run(&["policy", "show", "--config", "../config.toml"]);
                let is_valid = validator.is_valid(&document);
                assert_eq!(is_valid, Some(value) == lowest, "{text}");
                assert_eq!(ran.exit_code, if is_valid { 0 } else { 78 }, "{text}{ran:?}");
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count} values");
}

#[test]
fn limits_have_the_ranges_of_the_program() {
    for schema in [config().schema, policy().schema] {
        let limits = schema["$defs"]["limits"]["properties"].as_object().expect("limits").clone();
        assert_eq!(limits.len(), CapName::ALL.len());
        for cap in CapName::ALL {
            let limit = &limits[cap.name()];
            let bound = |key: &str| limit[key].as_u64().expect("a bound");
            let is_valid = |value: u64| Caps::default().set(cap, value).is_ok();
            assert!(is_valid(bound("minimum")) && is_valid(bound("maximum")), "{cap:?}");
            assert!(!is_valid(bound("maximum") + 1), "{cap:?}");
            assert!(!bound("minimum").checked_sub(1).is_some_and(is_valid), "{cap:?}");
        }
    }
}
