//! Filters for line-based settings, such as those of npm, pip and conda, and for similar text
//! formats.

use std::ops::Range;

use super::secrets::{
    has_known_token, is_secret_name, is_secret_value, without_passwords, without_proxy_user,
};

/// Removes lines with secrets, and returns whether anything was removed.
pub(super) fn without_secrets(text: &str) -> (String, bool) {
    let kept =
        text.lines().filter(|line| !is_secret(line)).map(|line| without_addresses_in(line) + "\n");
    let clean: String = kept.collect();
    let has_changed = clean.trim_end() != text.trim_end();
    (clean, has_changed)
}

/// Removes passwords from addresses in any text, and returns whether anything was removed.
pub(super) fn without_url_passwords(text: &str) -> (String, bool) {
    let clean = without_passwords(text);
    let has_changed = clean != text;
    (clean, has_changed)
}

/// Removes secrets from program arguments separated by blanks, and returns whether anything was
/// removed.
///
/// If the name of an option indicates a secret, the following word is removed.
pub(super) fn without_secret_words(text: &str) -> (String, bool) {
    let mut has_changed = false;
    let mut is_value = false;
    let mut clean = String::with_capacity(text.len());
    for word in text.split_inclusive(char::is_whitespace) {
        let plain = word.trim();
        if plain.is_empty() {
            clean.push_str(word);
            continue;
        }
        let option = unquoted(plain);
        let is_option = option.starts_with('-');
        let is_secret_word = match option.split_once('=') {
            Some((name, value)) => is_secret_pair(name, value),
            None => is_value && !is_option || has_known_token(option),
        };
        is_value = is_option && !option.contains('=') && is_secret_name(option);
        if is_secret_word {
            has_changed = true;
            clean.push_str(&word[word.trim_end().len()..]);
            continue;
        }
        let without = without_passwords(word);
        has_changed |= without != word;
        clean.push_str(&without);
    }
    (clean, has_changed)
}

fn without_addresses_in(line: &str) -> String {
    match line.split_once('=') {
        Some((name, value))
            if name.to_ascii_lowercase().contains("proxy") && value.contains('@') =>
        {
            let blanks = &value[..value.len() - value.trim_start().len()];
            format!("{name}={blanks}{}", without_proxy_user(value.trim()))
        }
        Some(_) | None => without_passwords(line),
    }
}

fn is_secret(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return false;
    }
    let pairs = [line.split_once('='), line.split_once(": ")];
    // Yarn 1 separates name and value by a blank, and Java properties may use a colon.
    let by_name = pairs
        .iter()
        .all(Option::is_none)
        .then(|| line.split_once(' '))
        .flatten()
        .or_else(|| line.split_once(':'));
    pairs.iter().flatten().any(|(key, value)| {
        is_secret_pair(key, value)
            || value.contains(['{', '[']) && value.split(['{', '[', ',']).any(is_secret_part)
    }) || by_name.is_some_and(|(key, value)| has_secret_name(key, value))
}

/// Returns whether a part of an inline table holds a secret.
fn is_secret_part(part: &str) -> bool {
    part.split_once(['=', ':'])
        .is_some_and(|(key, value)| is_secret_pair(key, value.trim_end_matches(['}', ']', ' '])))
}

fn is_secret_pair(key: &str, value: &str) -> bool {
    has_secret_name(key, value)
        || !is_reference(value) && is_secret_value(&without_passwords(unquoted(value)))
}

fn has_secret_name(key: &str, value: &str) -> bool {
    let key = unquoted(key);
    // An npm key contains the registry address before the name, with a colon between them.
    let name = key.rsplit(['/', ':']).next().unwrap_or_default();
    // Bundler stores user and password under the name of a host, in which `__` stands for a dot.
    let is_host = key.starts_with("BUNDLE_")
        && key.contains("__")
        && value.contains(':')
        && !value.contains("://");
    !is_reference(value) && (is_secret_name(name) || is_host)
}

/// Returns whether a value is empty, a boolean, or a reference to a variable.
fn is_reference(value: &str) -> bool {
    let value = unquoted(value);
    value.starts_with('$') || matches!(value, "" | "true" | "false")
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

/// Removes the contents of XML elements and the values of pairs whose names indicate secrets.
/// Returns whether anything was removed.
pub(super) fn without_secret_elements(text: &str) -> (String, bool) {
    let mut clean = String::with_capacity(text.len());
    let mut is_in_secret = false;
    for (at, tag) in text.split('<').enumerate() {
        // The content of a secret element may contain CDATA sections and comments.
        if at > 0 && is_in_secret && tag.starts_with('!') {
            continue;
        }
        if at > 0 {
            clean.push('<');
        }
        let Some((head, content)) = tag.split_once('>') else {
            clean.push_str(tag);
            continue;
        };
        let name = head.split([' ', '\n', '\r', '\t', '/']).next().unwrap_or_default();
        let key = attribute(head, "key").or_else(|| attribute(head, "name"));
        let is_secret = !head.starts_with('/')
            && (is_secret_name(name) || key.is_some_and(|range| is_secret_name(&head[range])));
        match attribute(head, "value").filter(|_| is_secret) {
            Some(value) => {
                clean.push_str(&head[..value.start]);
                clean.push_str(&head[value.end..]);
            }
            None => clean.push_str(head),
        }
        clean.push('>');
        is_in_secret = is_secret && !head.ends_with('/');
        if !is_in_secret || content.trim().starts_with("${") {
            clean.push_str(content);
        }
    }
    let clean = without_passwords(&clean);
    let has_changed = clean != text;
    (clean, has_changed)
}

/// Returns the range of an attribute's value in the start tag of an element.
fn attribute(head: &str, name: &str) -> Option<Range<usize>> {
    let is_attribute = |at: &usize| head[..*at].ends_with([' ', '\n', '\r', '\t']);
    let mut starts = head.match_indices(name).map(|(at, _)| at).filter(is_attribute);
    starts.find_map(|at| {
        let rest = head[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let start = head.len() - rest.len() + 1;
        Some(start..start + head[start..].find(quote)?)
    })
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
            (
                "_auth = \"SECRET\"\nregistry=https://registry.example/\n",
                "registry=https://registry.example/\n",
            ),
            (
                "[global]\nindex-url = https://u:SECRET@host/simple\n",
                "[global]\nindex-url = https://host/simple\n",
            ),
            (
                "extra-index-url =\n    https://SECRET@host/simple\n",
                "extra-index-url =\n    https://host/simple\n",
            ),
            (
                "channels:\n  - https://conda.example/t/SECRET/main\n",
                "channels:\n  - https://conda.example/main\n",
            ),
            (
                "[global]\nproxy = u:SECRET@proxy:3128\ntimeout = 60\n",
                "[global]\nproxy = proxy:3128\ntimeout = 60\n",
            ),
            (
                "export CARGO_REGISTRY_TOKEN=\"SECRET\"\nexport PATH=\"$HOME/.cargo/bin:$PATH\"\n",
                "export PATH=\"$HOME/.cargo/bin:$PATH\"\n",
            ),
            ("npmAuthToken: SECRET\nnodeLinker: node-modules\n", "nodeLinker: node-modules\n"),
            (
                "\"//h/:_authToken\" \"SECRET\"\nregistry \"https://h/\"\n",
                "registry \"https://h/\"\n",
            ),
            (
                "[install.scopes]\n\"@a\" = { token = \"SECRET\", url = \"https://h/\" }\nx = { y \
                    = 1 }\n",
                "[install.scopes]\nx = { y = 1 }\n",
            ),
            (
                "---\nBUNDLE_GEMS__EXAMPLE__ORG: \"u:SECRET\"\nBUNDLE_PATH: \"vendor\"\n",
                "---\nBUNDLE_PATH: \"vendor\"\n",
            ),
            ("signing.password=SECRET\norg.gradle.daemon=true\n", "org.gradle.daemon=true\n"),
            ("npmAuthToken: \"SECRET+A==\"\nyarnPath: x=y\n", "yarnPath: x=y\n"),
            ("signing.password:SECRET\nhost:example\n", "host:example\n"),
            ("# key of a thing\nimage: node:18\n", "# key of a thing\nimage: node:18\n"),
        ] {
            assert_eq!(without_secrets(text), (clean.to_owned(), clean != text), "{text}");
        }
    }

    #[test]
    fn arguments_lose_their_secrets() {
        for (text, clean) in [
            ("-Xmx2g -Dhttp.proxyPassword=SECRET -Da=b\n", "-Xmx2g  -Da=b\n"),
            ("-s\nsettings.xml\n--token\nSECRET\n-T4\n", "-s\nsettings.xml\n--token\n\n-T4\n"),
            ("-Durl=https://u:SECRET@h/x\n", "-Durl=https://h/x\n"),
            (
                "-Xmx2g\n-Dpassword=${env.PW}\n-Djava.io.tmpdir=/tmp\n",
                "-Xmx2g\n-Dpassword=${env.PW}\n-Djava.io.tmpdir=/tmp\n",
            ),
        ] {
            let expected = (clean.to_owned(), clean != text);
            assert_eq!(without_secret_words(text), expected, "{text}");
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
            (
                "<add key=\"ClearTextPassword\" value=\"SECRET\" />\n",
                "<add key=\"ClearTextPassword\" value=\"\" />\n",
            ),
            (
                "<add key=\"feed\" value=\"https://u:SECRET@h/x\" />",
                "<add key=\"feed\" value=\"https://h/x\" />",
            ),
            (
                "<password><![CDATA[SECRET]]></password><id>a</id>",
                "<password></password><id>a</id>",
            ),
            ("<password><!-- x -->SECRET</password>", "<password></password>"),
            ("<add\n value='key'\n key='Password'/>", "<add\n value=''\n key='Password'/>"),
            ("<add key=\"Password\" value=\"a\"/>", "<add key=\"Password\" value=\"\"/>"),
            ("no markup > at all < here", "no markup > at all < here"),
        ] {
            assert_eq!(without_secret_elements(text), (clean.to_owned(), clean != text), "{text}");
        }
    }
}
