//! Filters for line-based settings, such as those of npm, pip and conda, and for similar text
//! formats.

use std::ops::Range;

use super::secrets::{is_secret_name, is_secret_value, without_passwords, without_proxy_user};

/// Removes lines with secrets, and returns whether anything was removed.
pub(super) fn without_secrets(text: &str) -> (String, bool) {
    let mut clean = String::with_capacity(text.len());
    let mut is_in_secret_section = false;
    for line in text.lines() {
        if let Some(name) = section_name(line) {
            is_in_secret_section = is_secret_section(name);
        } else if is_in_secret_section && is_assignment(line) || is_secret(line) {
            continue;
        }
        clean.push_str(&without_addresses_in(without_secret_comment(line)));
        clean.push('\n');
    }
    let has_changed = clean.trim_end() != text.trim_end();
    (clean, has_changed)
}

/// Removes passwords from addresses in any text, and returns whether anything was removed.
pub(super) fn without_url_passwords(text: &str) -> (String, bool) {
    let clean = without_passwords(text);
    let has_changed = clean != text;
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
    if line.starts_with(['#', ';']) || line.starts_with("--") {
        return is_secret_comment(line);
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
    }) || by_name.is_some_and(|(key, value)| {
        // A line that opens a block stays, so that the file can still be parsed.
        !value.trim_end().ends_with('{') && has_secret_name(key, value)
    })
}

/// Returns the name of a section, as in `[name]`.
fn section_name(line: &str) -> Option<&str> {
    let line = line.trim();
    // An array of values ends with a comma or belongs to a key.
    line.strip_prefix('[')?.trim_start_matches('[').split_once(']').map(|(name, _)| name)
}

/// Returns whether all values of a section are secrets, such as in `[pypi-token]` and
/// `[http-basic.name]`.
fn is_secret_section(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut parts = name.split('.').map(unquoted);
    let is_secret = |part: &str| {
        let end = part.rsplit(['-', '_']).next().unwrap_or(part);
        part == "http-basic"
            || matches!(
                end,
                "auth"
                    | "credential"
                    | "credentials"
                    | "password"
                    | "passwords"
                    | "secret"
                    | "secrets"
                    | "token"
                    | "tokens"
            )
    };
    // Tasks can have any name.
    !name.starts_with("tasks.") && !name.starts_with("tools") && parts.any(is_secret)
}

/// Returns whether a line gives a name a value that is not a reference.
fn is_assignment(line: &str) -> bool {
    let line = line.trim();
    !line.starts_with(['#', ';'])
        && line.split_once('=').is_some_and(|(_, value)| !is_reference(value))
}

/// Returns the line without a comment that holds a secret.
fn without_secret_comment(line: &str) -> &str {
    let mut starts = [" #", " ;", "\t#", "\t;"].iter().filter_map(|start| line.find(start));
    let comment = starts.find(|at| is_secret_comment(line[*at..].trim_start()));
    comment.map_or(line, |at| line[..at].trim_end())
}

/// Returns whether a comment holds a secret. It is a setting that somebody turned off, so its value
/// is one word, unlike in most sentences.
fn is_secret_comment(comment: &str) -> bool {
    let setting = comment.trim_start_matches(['#', ';', '-', ' ', '\t']);
    let pair = setting.split_once('=').or_else(|| setting.split_once(": "));
    // Yarn 1 separates name and value by a blank, and Java properties may use a colon.
    let pair = pair.or_else(|| {
        let (key, value) = setting.split_once(' ').or_else(|| setting.rsplit_once(':'))?;
        key.contains([':', '_', '.']).then_some((key, value))
    });
    pair.is_some_and(|(key, value)| {
        let (key, value) = (key.trim(), value.trim());
        !key.contains(char::is_whitespace)
            && !value.contains(char::is_whitespace)
            && is_secret_pair(key, value)
    })
}

/// Returns the paths of the files that settings of Mercurial include.
pub(super) fn included(text: &str) -> Vec<String> {
    let paths = text.lines().filter_map(|line| line.strip_prefix("%include "));
    paths.map(|path| path.trim().to_owned()).collect()
}

/// Returns whether a part of an inline table holds a secret.
fn is_secret_part(part: &str) -> bool {
    part.split_once(['=', ':'])
        .is_some_and(|(key, value)| is_secret_pair(key, value.trim_end_matches(['}', ']', ' '])))
}

pub(super) fn is_secret_pair(key: &str, value: &str) -> bool {
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

pub(super) fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

/// Removes the contents of XML elements and the values of pairs whose names indicate secrets.
/// Returns whether anything was removed.
pub(super) fn without_secret_elements(text: &str) -> (String, bool) {
    let mut clean = String::with_capacity(text.len());
    let mut is_in_secret = false;
    // The outermost element whose whole content is secret, such as `<apikeys>`.
    let mut secret_parent: Option<&str> = None;
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
        if head.strip_prefix('/').map(str::trim) == secret_parent {
            secret_parent = None;
        }
        let has_secret_name = is_secret_name(name);
        let is_secret = !head.starts_with('/')
            && (has_secret_name
                || secret_parent.is_some()
                || key.is_some_and(|range| is_secret_name(&head[range])));
        if at > 0 && has_secret_name && !head.starts_with(['/', '!', '?']) && !head.ends_with('/') {
            secret_parent = secret_parent.or(Some(name));
        }
        match attribute(head, "value").filter(|_| is_secret) {
            Some(value) => {
                clean.push_str(&head[..value.start]);
                clean.push_str(&head[value.end..]);
            }
            None => clean.push_str(head),
        }
        clean.push('>');
        is_in_secret = is_secret && !head.ends_with('/') || secret_parent.is_some();
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
            ("#//registry.example/:_authToken=SECRET\nfund=false\n", "fund=false\n"),
            ("; //registry.example/:_password = \"SECRET\"\na=b\n", "a=b\n"),
            ("# \"//h/:_authToken\" \"SECRET\"\na b\n", "a b\n"),
            ("a=b # token=SECRET\nc=d # one\n", "a=b\nc=d # one\n"),
            ("# password: see the wiki\na=b\n", "# password: see the wiki\na=b\n"),
            ("[pypi-token]\npypi = \"SECRET\"\n[x]\na = 1\n", "[pypi-token]\n[x]\na = 1\n"),
            (
                "[http-basic.mine]\nusername = \"SECRET\"\n[tasks.auth]\nrun = \"a\"\n",
                "[http-basic.mine]\n[tasks.auth]\nrun = \"a\"\n",
            ),
            (
                "---\n:rubygems_api_key: SECRET\n:sources:\n- https://u:SECRET@h/\n",
                "---\n:sources:\n- https://h/\n",
            ),
            ("remote-repo: x\n  password: SECRET\n-- password: SECRET\n", "remote-repo: x\n"),
            ("GOPROXY=https://u:SECRET@h,direct\n", "GOPROXY=https://h,direct\n"),
            ("credentials \"h\" {\n  token = \"SECRET\"\n}\n", "credentials \"h\" {\n}\n"),
            ("[env]\nAPI_TOKEN = \"SECRET\"\nA = \"b\"\n", "[env]\nA = \"b\"\n"),
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
            (
                "<apikeys><add key=\"https://h/\" value=\"SECRET\"/></apikeys><add key=\"a\" \
                    value=\"b\"/>",
                "<apikeys><add key=\"https://h/\" value=\"\"/></apikeys><add key=\"a\" \
                    value=\"b\"/>",
            ),
            (
                "<packageSourceCredentials><a><add key=\"Username\" value=\"SECRET\"/></a>\
                    </packageSourceCredentials><b>c</b>",
                "<packageSourceCredentials><a><add key=\"Username\" value=\"\"/></a>\
                    </packageSourceCredentials><b>c</b>",
            ),
            ("no markup > at all < here", "no markup > at all < here"),
        ] {
            assert_eq!(without_secret_elements(text), (clean.to_owned(), clean != text), "{text}");
        }
    }
}
