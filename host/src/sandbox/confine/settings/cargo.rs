//! cargo's settings without the tokens of registries, passwords of proxies and secret variables.

use toml::{Table, Value};

use super::secrets::{is_secret_name, is_secret_value, without_passwords};

/// Settings that hold a token, or name a program that does with its arguments.
const SECRET_KEYS: &[&str] =
    &["token", "secret-key", "credential-provider", "credential-process", "credential-alias", "global-credential-providers"];

/// The settings without secrets and comments, and whether that is less than there was. What is no TOML has none.
pub(super) fn without_secrets(text: &str) -> (String, bool) {
    let Ok(mut settings) = toml::from_str::<Table>(text) else { return (String::new(), true) };
    let before = settings.clone();
    for (name, value) in &mut settings {
        match (name.as_str(), value) {
            ("env", Value::Table(variables)) => clean_variables(variables),
            // Crates have any name.
            ("patch" | "replace", value) => clean(value, false),
            (_, value) => clean(value, true),
        }
    }
    settings.retain(|name, _| !SECRET_KEYS.contains(&name));
    let in_comment = |line: &str| line.split_once('#').is_some_and(|(_, comment)| is_secret_name(comment) || is_secret_value(comment));
    let has_changed = settings != before || without_passwords(text) != text || text.lines().any(in_comment);
    (toml::to_string(&settings).unwrap_or_default(), has_changed)
}

fn clean(value: &mut Value, has_secret_keys: bool) {
    match value {
        Value::String(text) => *text = without_passwords(text),
        Value::Array(values) => values.iter_mut().for_each(|value| clean(value, has_secret_keys)),
        Value::Table(table) => {
            let old = std::mem::take(table);
            for (key, mut value) in old {
                if has_secret_keys && SECRET_KEYS.contains(&key.as_str()) {
                    continue;
                }
                clean(&mut value, has_secret_keys);
                table.insert(without_passwords(&key), value);
            }
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

fn clean_variables(variables: &mut Table) {
    variables.retain(|name, value| {
        let text = match &*value {
            Value::String(text) => Some(text),
            Value::Table(table) => table.get("value").and_then(|value| if let Value::String(text) = value { Some(text) } else { None }),
            Value::Array(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => None,
        };
        !is_secret_name(name) && !text.is_some_and(|text| is_secret_value(&without_passwords(text)))
    });
    variables.iter_mut().for_each(|(_, value)| clean(value, false));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_the_rest_is_what_it_was() {
        let text = r#"
# token = "SECRET0"
[registry]
token = "SECRET1"
default = "mine"
[registries.mine]
index = "sparse+https://u:SECRET2@host/index/"
token = "SECRET3"
credential-provider = ["helper", "SECRET4"]
[http]
proxy = "http://u:SECRET5@proxy:8080"
[env]
API_TOKEN = "SECRET6"
DATABASE_URL = "postgres://u:SECRET7@host/db"
HASH = { value = "SECRET8abc0123456789def", force = true }
OPENSSL_DIR = { value = "vendor/openssl", relative = true }
[patch."https://u:SECRET9@host/a"]
token = { path = "../token" }
[build]
jobs = 2
rustflags = ["-C", "target-cpu=native"]
"#;
        let (clean, has_changed) = without_secrets(text);
        assert!(has_changed && !clean.contains("SECRET"), "{clean}");
        insta::assert_snapshot!(clean);
        assert_eq!(without_secrets(&clean), (clean.clone(), false));
        assert!(!without_secrets("[build]\njobs = 2 # two\n").1);
        assert_eq!(without_secrets("[build\n"), (String::new(), true));
    }
}
