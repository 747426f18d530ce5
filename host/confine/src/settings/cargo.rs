//! A filter for cargo settings that removes registry tokens, proxy passwords and secret variables.

use toml::{Table, Value};

use super::secrets::{
    has_known_token, is_secret_command, is_secret_name, is_secret_value, without_passwords,
    without_proxy_user,
};

/// Keys that hold a token, or the command line of a credential program with a token in its
/// arguments.
const SECRET_KEYS: &[&str] = &[
    "token",
    "secret-key",
    "credential-provider",
    "credential-process",
    "credential-alias",
    "global-credential-providers",
];

/// Keys whose value is a program with its arguments.
const COMMANDS: &[&str] = &[
    "runner",
    "rustc",
    "rustc-wrapper",
    "rustc-workspace-wrapper",
    "rustdoc",
    "linker",
    "browser",
];

/// Removes secrets and comments, and returns whether the text differs. Invalid TOML becomes an
/// empty text.
pub(super) fn without_secrets(text: &str) -> (String, bool) {
    let Ok(mut settings) = toml::from_str::<Table>(text) else { return (String::new(), true) };
    let before = settings.clone();
    for (name, value) in &mut settings {
        match (name.as_str(), value) {
            ("env", Value::Table(variables)) => clean_variables(variables),
            ("alias", Value::Table(aliases)) => {
                aliases.retain(|_, value| !is_secret_command(&in_words(value)))
            }
            // Crates can have any name.
            ("patch" | "replace", value) => clean(value, false),
            (_, value) => clean(value, true),
        }
    }
    settings.retain(|name, _| !SECRET_KEYS.contains(&name));
    let in_comment = |line: &str| {
        line.split_once('#')
            .is_some_and(|(_, comment)| is_secret_name(comment) || is_secret_value(comment))
    };
    let has_changed =
        settings != before || without_passwords(text) != text || text.lines().any(in_comment);
    (toml::to_string(&settings).unwrap_or_default(), has_changed)
}

/// Returns the paths of the included files, as written.
pub(super) fn included(text: &str) -> Vec<String> {
    let path = |value: &Value| match value {
        Value::String(path) => Some(path.clone()),
        Value::Table(table) => Some(table.get("path")?.as_str()?.to_owned()),
        _ => None,
    };
    match toml::from_str::<Table>(text).ok().and_then(|mut settings| settings.remove("include")) {
        Some(Value::Array(all)) => all.iter().filter_map(path).collect(),
        Some(one) => path(&one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// Joins a program and its arguments as typed in a shell.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(in_words).collect::<Vec<_>>().join(" "),
        Value::Table(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => String::new(),
    }
}

fn clean(value: &mut Value, has_secret_keys: bool) {
    match value {
        Value::String(text) => *text = without_passwords(text),
        Value::Array(values) => {
            values.iter_mut().for_each(|value| clean(value, has_secret_keys));
        }
        Value::Table(table) => {
            let old = std::mem::take(table);
            for (key, mut value) in old {
                let is_secret = SECRET_KEYS.contains(&key.as_str())
                    || COMMANDS.contains(&key.as_str()) && is_secret_command(&in_words(&value))
                    || has_known_token(&in_words(&value));
                if has_secret_keys && is_secret {
                    continue;
                }
                if let (true, "proxy", Value::String(proxy)) =
                    (has_secret_keys, key.as_str(), &mut value)
                {
                    *proxy = without_proxy_user(proxy);
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
            Value::Table(table) => table
                .get("value")
                .and_then(|value| if let Value::String(text) = value { Some(text) } else { None }),
            Value::Array(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_) => None,
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
rustc-wrapper = "cache --token=SECRET10"
[alias]
b = "build --release"
p = "publish --token SECRET11"
q = ["publish", "--token", "SECRET12"]
[target.x86_64-unknown-linux-gnu]
runner = ["curl", "-H", "Authorization: SECRET13"]
linker = "clang"
[target.aarch64-unknown-linux-gnu]
runner = "qemu-aarch64 -L /usr/aarch64-linux-gnu"
rustflags = ["--cfg", "ghp_SECRET14abcdefghijklmn"]
[source.crates-io]
replace-with = "mirror"
[source.mirror]
registry = "https://u:SECRET15@host/index"
[https]
proxy = "u:SECRET16@proxy:3128"
"#;
        let (clean, has_changed) = without_secrets(text);
        assert!(has_changed && !clean.contains("SECRET"), "{clean}");
        insta::assert_snapshot!(clean);
        assert_eq!(without_secrets(&clean), (clean.clone(), false));
        assert_eq!(
            included("include = [\"a.toml\", { path = \"b.toml\", optional = true }]"),
            ["a.toml", "b.toml"]
        );
        assert_eq!(included("include = \"a.toml\""), ["a.toml"]);
        assert!(!without_secrets("[build]\njobs = 2 # two\n").1);
        assert_eq!(without_secrets("[build\n"), (String::new(), true));
    }
}
