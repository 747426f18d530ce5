//! Addresses, as far as requests need them: where to, and what a redirect or a link makes of that.

use std::fmt;

/// An address over HTTP, without its fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    encrypted: bool,
    /// The host, with its port if there is one.
    authority: String,
    /// Begins with a slash.
    path: String,
    /// With its question mark, or empty.
    query: String,
}

impl Url {
    /// Reads an address that is whole.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) =
            text.split_once("://").ok_or("it is not a complete URL; begin it with `https://`")?;
        let encrypted = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => {
                return Err(format!(
                    "`{}` addresses are not fetched, only `https` and `http`",
                    short(scheme)
                ));
            }
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.is_empty() {
            return Err("it has no host".into());
        }
        if authority.contains('@') {
            return Err(
                "it contains a user name or a password, which are not sent; remove them".into()
            );
        }
        if let Some(odd) =
            authority.chars().find(|c| !c.is_ascii_alphanumeric() && !".-_:[]".contains(*c))
        {
            return Err(format!(
                "{odd:?} is not allowed in a host name; write an internationalized name in its \
                    ASCII form (`xn--…`)"
            ));
        }
        let (path, query) = path_and_query(rest);
        Ok(Self {
            encrypted,
            authority: authority.to_ascii_lowercase(),
            path: without_dots(&path),
            query,
        })
    }

    /// Where a link or a redirect on this page leads (RFC 3986, 5.2).
    pub(crate) fn join(&self, reference: &str) -> Result<Self, String> {
        let reference = reference.trim().split('#').next().unwrap_or_default();
        let before = reference.split(['/', '?']).next().unwrap_or_default();
        if before.contains(':') {
            return Self::parse(reference);
        }
        if reference.starts_with("//") {
            return Self::parse(&format!("{}:{reference}", self.scheme()));
        }
        let (path, query) = path_and_query(reference);
        let here = Self {
            encrypted: self.encrypted,
            authority: self.authority.clone(),
            path: self.path.clone(),
            query,
        };
        Ok(match (reference.split('?').next().unwrap_or_default(), reference.contains('?')) {
            ("", true) => here,
            ("", false) => self.clone(),
            (absolute, _) if absolute.starts_with('/') => {
                Self { path: without_dots(&path), ..here }
            }
            _ => {
                let folder = &self.path[..=self.path.rfind('/').unwrap_or(0)];
                Self {
                    path: without_dots(&format!("{folder}{}", path.trim_start_matches('/'))),
                    ..here
                }
            }
        })
    }

    fn scheme(&self) -> &'static str {
        if self.encrypted { "https" } else { "http" }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}{}", self.scheme(), self.authority, self.path, self.query)
    }
}

/// The path, with a slash in front, and the query, with its question mark; what no request may hold
/// is percent-encoded.
fn path_and_query(text: &str) -> (String, String) {
    let text = text.split('#').next().unwrap_or_default();
    let (path, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    let slash = if path.starts_with('/') { "" } else { "/" };
    (format!("{slash}{}", encoded(path)), encoded(query))
}

fn encoded(text: &str) -> String {
    use fmt::Write as _;

    text.bytes().fold(String::with_capacity(text.len()), |mut all, byte| {
        match byte {
            b'!' | b'#'..=b';' | b'=' | b'?'..=b'[' | b']' | b'_' | b'a'..=b'z' | b'~' => {
                all.push(char::from(byte))
            }
            // What a browser takes for a slash is one.
            b'\\' => all.push('/'),
            // A line break in an address is none of it.
            b'\t' | b'\n' | b'\r' => {}
            // Writing to a String cannot fail.
            _ => {
                let _ = write!(all, "%{byte:02X}");
            }
        }
        all
    })
}

fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let last = path.rsplit('/').next().unwrap_or_default();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let slash = if matches!(last, "." | "..") && !parts.is_empty() { "/" } else { "" };
    format!("/{}{slash}", parts.join("/"))
}

fn short(text: &str) -> String {
    text.chars().take(20).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_into_one_form() {
        let table = [
            ("https://Example.COM", "https://example.com/"),
            (" HTTP://example.com:8080/a/../b/./c?d=e#f ", "http://example.com:8080/b/c?d=e"),
            ("https://example.com?q=a b", "https://example.com/?q=a%20b"),
            ("https://example.com/\u{fc}/%C3%BC\"<>", "https://example.com/%C3%BC/%C3%BC%22%3C%3E"),
            ("https://[::1]:80/", "https://[::1]:80/"),
            ("https://example.com/a\\b\n", "https://example.com/a/b"),
        ];
        for (text, expected) in table {
            assert_eq!(
                Url::parse(text).map(|url| url.to_string()).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_address_says_why() {
        let table = [
            ("example.com", "begin it with `https://`"),
            ("file:///etc/passwd", "`file` addresses are not fetched"),
            ("https:///path", "has no host"),
            ("https://me:secret@example.com/", "remove them"),
            ("https://b\u{fc}cher.example/", "xn--"),
            ("https://exa mple.com/", "' ' is not allowed in a host name"),
            ("https://evil.com\\@example.com/", "remove them"),
        ];
        for (text, expected) in table {
            let problem = Url::parse(text).expect_err(text);
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn r122_a_redirect_leads_where_a_browser_would_go() {
        let table = [
            ("https://other.example/x", "https://other.example/x"),
            ("//other.example/x", "https://other.example/x"),
            ("/x/y", "https://example.com/x/y"),
            ("x", "https://example.com/a/x"),
            ("../x/", "https://example.com/x/"),
            ("../../../x", "https://example.com/x"),
            (".", "https://example.com/a/"),
            ("?r", "https://example.com/a/b?r"),
            ("x?y=/../z", "https://example.com/a/x?y=/../z"),
            ("#f", "https://example.com/a/b?q"),
            ("", "https://example.com/a/b?q"),
        ];
        let base = Url::parse("https://example.com/a/b?q").expect("an address");
        for (reference, expected) in table {
            assert_eq!(
                base.join(reference).map(|url| url.to_string()).as_deref(),
                Ok(expected),
                "{reference}"
            );
        }
        assert!(base.join("javascript:alert(1)").is_err());
        assert!(base.join("mailto:me@example.com").is_err());
    }
}
