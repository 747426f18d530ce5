//! Recognition of secrets in settings by name, by form, or as the user of an address.
//!
//! Names and forms are only hints, so the rules prefer false positives. Commands get copies of
//! settings, and most programs work without the removed parts.

/// Parts of the names of settings and variables that hold secrets.
const SECRET_NAME_PARTS: &[&str] = &[
    "token",
    "secret",
    "pass",
    "pwd",
    "credential",
    "cookie",
    "extraheader",
    "bearer",
    "apikey",
    "private",
    "oauth",
];
/// The prefixes of tokens of well-known services.
const TOKEN_PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "sk-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "npm_",
    "pypi-",
    "dckr_pat_",
    "hf_",
    "ya29.",
    "eyJ",
    "cio",
    "crsh",
    "shpat_",
    "rubygems_",
    "oy2",
    "NRAK-",
    "SG.",
    "dop_v1_",
    "ATATT",
];
/// The minimum length of a word with a token prefix to count as a token.
const MIN_PREFIXED_LEN: usize = 16;
/// The minimum length of a mix of letters and digits to count as a token.
const MIN_MIXED_LEN: usize = 16;
/// Words in command lines that come before a secret.
const SECRET_COMMAND_WORDS: &[&str] = &[
    "pass",
    "token",
    "secret",
    "authorization",
    "bearer",
    " -k ",
    "apikey",
    "api-key",
    "api_key",
    "://",
];

/// Returns whether a setting or variable with this name holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    SECRET_NAME_PARTS.iter().any(|known| name.contains(known))
        || name.contains("auth") && (!name.contains("author") || name.contains("authorization"))
        || words.iter().any(|word| matches!(*word, "key" | "pat" | "pw" | "sid" | "session"))
        || words.last().is_some_and(|last| last.ends_with("key") && !last.ends_with("signingkey"))
}

/// Returns whether a value looks like a token.
pub(super) fn is_secret_value(value: &str) -> bool {
    let is_mixed = |word: &str| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        word.len() >= MIN_MIXED_LEN && digits >= 3 && digits < word.len()
    };
    has_known_token(value) || value.split(|c: char| !c.is_ascii_alphanumeric()).any(is_mixed)
}

/// Returns whether a shell command line may hold a secret.
pub(super) fn is_secret_command(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    let words: Vec<&str> = line.split_whitespace().collect();
    // `NAME=VALUE`, as a variable or as an option.
    let is_assigned = |word: &&str| {
        let assigned = word.trim_start_matches(['\'', '"', '(', '{', '!']).split_once('=');
        assigned.is_some_and(|(name, value)| {
            !value.is_empty() && is_secret_name(name.trim_start_matches('-'))
        })
    };
    // `-u NAME:PASSWORD`
    let is_user = |pair: &[&str]| {
        matches!(pair[0], "-u" | "--user" | "--proxy-user") && pair[1].contains(':')
    };
    is_secret_value(line)
        || SECRET_COMMAND_WORDS.iter().any(|word| lower.contains(word))
        || words.iter().any(is_assigned)
        || words.windows(2).any(is_user)
}

/// Returns whether a word of the text starts with the token prefix of a well-known service.
pub(super) fn has_known_token(text: &str) -> bool {
    let is_known = |word: &str| {
        word.len() >= MIN_PREFIXED_LEN
            && TOKEN_PREFIXES.iter().any(|prefix| word.starts_with(prefix))
    };
    text.split(|c: char| c.is_whitespace() || "\"'=,;/".contains(c)).any(is_known)
}

/// Removes the user from a proxy address, with or without a scheme.
pub(super) fn without_proxy_user(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, host)) if !text.contains("://") => host.to_owned(),
        Some(_) | None => without_passwords(text),
    }
}

/// Removes the users and passwords from all addresses in a text.
///
/// SSH addresses keep the user name, which is not a secret there. In other addresses a token is
/// often in its place.
pub(super) fn without_passwords(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        let scheme_at = before[..at]
            .rfind(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
            .map_or(0, |end| end + 1);
        let is_ssh = before[scheme_at..at].to_ascii_lowercase().contains("ssh");
        let end = after
            .find(|c: char| c.is_whitespace() || "/\\?#\"'`<>|,;)".contains(c))
            .unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((user, host)) if is_ssh => {
                clean.push_str(user.split(':').next().unwrap_or_default());
                clean.push('@');
                clean.push_str(host);
            }
            Some((_, host)) => clean.push_str(host),
            None => clean.push_str(authority),
        }
        rest = push_url_path(&mut clean, tail);
    }
    clean.push_str(rest);
    clean
}

/// Adds the path of an address without its secrets, and returns the text after the address.
fn push_url_path<'a>(clean: &mut String, tail: &'a str) -> &'a str {
    let end =
        tail.find(|c: char| c.is_whitespace() || "\"'`<>|,;)".contains(c)).unwrap_or(tail.len());
    let (path, rest) = tail.split_at(end);
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    // anaconda.org puts tokens after `/t/`.
    match path.strip_prefix("/t/").and_then(|after| after.split_once('/')) {
        Some((_, after)) => {
            clean.push('/');
            clean.push_str(after);
        }
        None => clean.push_str(path),
    }
    let is_secret = |query: &str| {
        query.split('&').any(|part| {
            is_secret_name(part.split('=').next().unwrap_or_default()) || is_secret_value(part)
        })
    };
    if let Some(query) = query.filter(|query| !is_secret(query) && !query.contains("sig=")) {
        clean.push('?');
        clean.push_str(query);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_of_secrets_are_told_from_others() {
        for name in [
            "token",
            "_authToken",
            "DB_PASSWORD",
            "http.extraheader",
            "AWS_SECRET_ACCESS_KEY",
            "apiKey",
            "_auth",
            "SSL_KEY",
            "GITHUB_PAT",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "author",
            "useremail",
            "OPENSSL_DIR",
            "RUST_LOG",
            "keymap",
            "signingkey",
            "monkeys",
            "path",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
        for value in [
            "ghp_0123456789abcdefghij",
            "cio0123456789abcdef",
            "a3f8e2b1c9d07654",
            "AUTHORIZATION: basic QWxhZGRpbjpvcGVu1234567890==",
        ] {
            assert!(is_secret_value(value), "{value}");
        }
        for value in [
            "true",
            "/home/u/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/lib",
            "-C target-cpu=native",
            "main",
            "info,hyper=debug",
        ] {
            assert!(!is_secret_value(value), "{value}");
        }
        assert!(
            is_secret_command("!f() { echo password=hunter2; }; f")
                && is_secret_command("openssl enc -d -k hunter2")
        );
        for line in [
            "sshpass -p hunter2 ssh",
            "env API_KEY=hunter2 ssh",
            "curl -u me:hunter2",
            "tool --auth=hunter2",
            "!f() { SECRET=x; }; f",
        ] {
            assert!(is_secret_command(line), "{line}");
        }
        for line in [
            "!git log --oneline --graph",
            "push -u origin HEAD",
            "ssh -i ~/.ssh/work -o IdentitiesOnly=yes",
            "commit --author=me",
        ] {
            assert!(!is_secret_command(line), "{line}");
        }
    }

    #[test]
    fn proxies_lose_their_users() {
        for (text, clean) in [
            ("u:p@proxy:3128", "proxy:3128"),
            ("http://u:p@proxy:3128", "http://proxy:3128"),
            ("socks5h://u:p@ss@proxy", "socks5h://proxy"),
            ("proxy:3128", "proxy:3128"),
        ] {
            assert_eq!(without_proxy_user(text), clean, "{text}");
        }
    }

    #[test]
    fn addresses_lose_their_passwords_and_keep_the_rest() {
        for (text, clean) in [
            ("https://user:TOKEN@host/a.git", "https://host/a.git"),
            ("https://TOKEN@host:8443", "https://host:8443"),
            (
                "url = \"sparse+https://u:p@host/index/\" # more",
                "url = \"sparse+https://host/index/\" # more",
            ),
            ("ssh://git:secret@host/x", "ssh://git@host/x"),
            ("git@host:a/b.git", "git@host:a/b.git"),
            ("a https://u:p@b/ c http://d:e@f g", "a https://b/ c http://f g"),
            ("https://u:p@ss@host/x", "https://host/x"),
            ("https://host/t/tk-12345/channel", "https://host/channel"),
            ("https://host/x?private_token=abc", "https://host/x"),
            ("https://host/x?ref=main", "https://host/x?ref=main"),
            ("no address at all", "no address at all"),
            ("://", "://"),
        ] {
            assert_eq!(without_passwords(text), clean, "{text}");
        }
    }
}
