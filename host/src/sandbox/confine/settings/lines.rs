//! Settings of a line each, such as those of npm, pip and conda, without what in them is a secret.

use super::secrets::{is_secret_name, is_secret_value, without_passwords, without_proxy_user};

/// The settings without secrets, and whether that is less than there was.
pub(super) fn without_secrets(text: &str) -> (String, bool) {
    let kept = text.lines().filter(|line| !is_secret(line)).map(|line| without_addresses_in(line) + "\n");
    let clean: String = kept.collect();
    let has_changed = clean.trim_end() != text.trim_end();
    (clean, has_changed)
}

/// The same for text of any form, in which only addresses are told.
pub(super) fn without_addresses(text: &str) -> (String, bool) {
    let clean = without_passwords(text);
    let has_changed = clean != text;
    (clean, has_changed)
}

fn without_addresses_in(line: &str) -> String {
    match line.split_once('=') {
        Some((name, value)) if name.to_ascii_lowercase().contains("proxy") && value.contains('@') => {
            let blanks = &value[..value.len() - value.trim_start().len()];
            format!("{name}={blanks}{}", without_proxy_user(value.trim()))
        }
        Some(_) | None => without_passwords(line),
    }
}

fn is_secret(line: &str) -> bool {
    let line = line.trim();
    // Of Yarn's first version, name and value are two words.
    let pair = line.split_once('=').or_else(|| line.split_once(": ")).or_else(|| line.split_once(' '));
    let Some((key, value)) = pair.filter(|_| !line.starts_with(['#', ';'])) else { return false };
    is_secret_pair(key, value) || value.contains(['{', '[']) && value.split(['{', '[', ',']).any(is_secret_part)
}

/// A part of a table that is written in one line.
fn is_secret_part(part: &str) -> bool {
    part.split_once(['=', ':']).is_some_and(|(key, value)| is_secret_pair(key, value.trim_end_matches(['}', ']', ' '])))
}

fn is_secret_pair(key: &str, value: &str) -> bool {
    let key = key.trim().trim_matches(['"', '\'']);
    // In a key of npm's the address of the registry comes before the name, with a colon between them.
    let name = key.rsplit(['/', ':']).next().unwrap_or_default();
    let value = value.trim().trim_matches(['"', '\'']);
    let is_reference = value.starts_with('$') || matches!(value, "" | "true" | "false");
    // Bundler keeps user and password under the name of a host, in which `__` stands for a dot.
    let is_host = key.starts_with("BUNDLE_") && key.contains("__") && value.contains(':') && !value.contains("://");
    !is_reference && (is_secret_name(name) || is_host || is_secret_value(&without_passwords(value)))
}

/// XML without the contents of elements, and without the values of pairs, whose names say that they are secrets.
pub(super) fn without_secret_elements(text: &str) -> (String, bool) {
    let mut clean = String::with_capacity(text.len());
    for (at, tag) in text.split('<').enumerate() {
        if at > 0 {
            clean.push('<');
        }
        let Some((head, content)) = tag.split_once('>') else {
            clean.push_str(tag);
            continue;
        };
        let name = head.split([' ', '\n', '\t', '/']).next().unwrap_or_default();
        let key = attribute(head, "key").or_else(|| attribute(head, "name"));
        let key_is_secret = !head.starts_with('/') && (is_secret_name(name) || key.is_some_and(is_secret_name));
        match attribute(head, "value").filter(|_| key_is_secret) {
            Some(value) if !value.is_empty() => clean.push_str(&head.replace(value, "")),
            Some(_) | None => clean.push_str(head),
        }
        clean.push('>');
        let is_reference = content.trim().starts_with("${");
        clean.push_str(if key_is_secret && !is_reference && !head.ends_with('/') { "" } else { content });
    }
    let clean = without_passwords(&clean);
    let has_changed = clean != text;
    (clean, has_changed)
}

fn attribute<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = head.split_once(&format!(" {name}="))?;
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    rest[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_the_rest_is_what_it_was() {
        for (text, clean) in [
            ("//registry.example/:_authToken=SECRET\nfund=false\n", "fund=false\n"),
            (
                "//registry.example/:_authToken=${NPM_TOKEN}\nalways-auth=true\n",
                "//registry.example/:_authToken=${NPM_TOKEN}\nalways-auth=true\n",
            ),
            ("_auth = \"SECRET\"\nregistry=https://registry.example/\n", "registry=https://registry.example/\n"),
            ("[global]\nindex-url = https://u:SECRET@host/simple\n", "[global]\nindex-url = https://host/simple\n"),
            ("extra-index-url =\n    https://SECRET@host/simple\n", "extra-index-url =\n    https://host/simple\n"),
            ("channels:\n  - https://conda.example/t/SECRET/main\n", "channels:\n  - https://conda.example/main\n"),
            ("[global]\nproxy = u:SECRET@proxy:3128\ntimeout = 60\n", "[global]\nproxy = proxy:3128\ntimeout = 60\n"),
            (
                "export CARGO_REGISTRY_TOKEN=\"SECRET\"\nexport PATH=\"$HOME/.cargo/bin:$PATH\"\n",
                "export PATH=\"$HOME/.cargo/bin:$PATH\"\n",
            ),
            ("npmAuthToken: SECRET\nnodeLinker: node-modules\n", "nodeLinker: node-modules\n"),
            ("\"//h/:_authToken\" \"SECRET\"\nregistry \"https://h/\"\n", "registry \"https://h/\"\n"),
            (
                "[install.scopes]\n\"@a\" = { token = \"SECRET\", url = \"https://h/\" }\nx = { y = 1 }\n",
                "[install.scopes]\nx = { y = 1 }\n",
            ),
            ("---\nBUNDLE_GEMS__EXAMPLE__ORG: \"u:SECRET\"\nBUNDLE_PATH: \"vendor\"\n", "---\nBUNDLE_PATH: \"vendor\"\n"),
            ("signing.password=SECRET\norg.gradle.daemon=true\n", "org.gradle.daemon=true\n"),
            ("# key of a thing\nimage: node:18\n", "# key of a thing\nimage: node:18\n"),
        ] {
            assert_eq!(without_secrets(text), (clean.to_owned(), clean != text), "{text}");
        }
    }

    #[test]
    fn elements_of_markup_keep_their_places() {
        for (text, clean) in [
            (
                "<server><id>a</id><username>u</username><password>SECRET</password></server>\n",
                "<server><id>a</id><username>u</username><password></password></server>\n",
            ),
            ("<password>${env.PW}</password>", "<password>${env.PW}</password>"),
            ("<add key=\"ClearTextPassword\" value=\"SECRET\" />\n", "<add key=\"ClearTextPassword\" value=\"\" />\n"),
            ("<add key=\"feed\" value=\"https://u:SECRET@h/x\" />", "<add key=\"feed\" value=\"https://h/x\" />"),
            ("no markup > at all < here", "no markup > at all < here"),
        ] {
            assert_eq!(without_secret_elements(text), (clean.to_owned(), clean != text), "{text}");
        }
    }
}
