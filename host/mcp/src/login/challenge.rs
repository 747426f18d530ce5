//! The header `WWW-Authenticate` of a server that demands a login.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// The longest header that is read, in bytes.
const MAX_CHALLENGE_LEN: usize = 4096;

/// What a server says about the login that it demands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoginChallenge {
    /// Where the metadata of the server is.
    pub(crate) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(crate) scope: Option<String>,
}

impl LoginChallenge {
    /// Reads the first challenge with the scheme `Bearer`.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let texts =
            headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut short = texts.filter(|text| text.len() <= MAX_CHALLENGE_LEN);
        short.find_map(parse).unwrap_or_default()
    }
}

fn parse(text: &str) -> Option<LoginChallenge> {
    let (scheme, mut rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut challenge = LoginChallenge::default();
    while let Some((name, value, after)) = next_parameter(rest) {
        let slot = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => Some(&mut challenge.resource_metadata),
            "scope" => Some(&mut challenge.scope),
            _ => None,
        };
        if let Some(slot) = slot {
            slot.get_or_insert(value);
        }
        rest = after;
    }
    Some(challenge)
}

/// Returns the name and the value of the next parameter, and the rest.
fn next_parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([' ', ',', '\t']);
    let (name, rest) = text.split_once('=')?;
    let name = name.trim();
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let rest = rest.trim_start();
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        return Some((name, rest[..end].to_owned(), &rest[end..]));
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, char) in quoted.char_indices() {
        match char {
            _ if escaped => {
                value.push(char);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((name, value, &quoted[at + 1..])),
            _ => value.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_parameters_of_a_challenge_are_found() {
        let table = [
            ("Bearer", None, None),
            ("Basic realm=\"x\"", None, None),
            ("Bearer resource_metadata=\"https://a.com/m\"", Some("https://a.com/m"), None),
            (
                "bearer realm=\"a, b=c\", scope=\"r w\" , resource_metadata=x",
                Some("x"),
                Some("r w"),
            ),
            ("Bearer scope=\"a\\\"b\\\\\"", None, Some("a\"b\\")),
            ("Bearer scope=one, scope=two", None, Some("one")),
            ("Bearer scope=\"without end", None, None),
            ("Bearer =x, scope=y", None, None),
        ];
        for (text, metadata, scope) in table {
            let value = HeaderValue::from_str(text).expect(text);
            let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, value)]);
            let challenge = LoginChallenge::read(&headers);
            assert_eq!(challenge.resource_metadata.as_deref(), metadata, "{text}");
            assert_eq!(challenge.scope.as_deref(), scope, "{text}");
        }
    }
}
