//! The host of a URL, as a pattern.

use crate::policy::HostAddress;

/// The schemes with their default ports.
const SCHEMES: [(&str, u16); 4] = [("https", 443), ("http", 80), ("ssh", 22), ("git", 9418)];

/// Returns the host of a URL as a host pattern; `None` for files and other schemes. Prefixes like
/// `sparse+` are ignored.
pub(super) fn host_pattern(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let scheme = scheme.rsplit('+').next()?;
    let (_, default) = SCHEMES.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let text = if has_port { host.to_owned() } else { format!("{host}:{default}") };
    // The pattern is a single host: a star or another odd character is none.
    HostAddress::parse(&text).ok().map(|host| host.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_of_a_url_is_its_host_and_port() {
        for (url, expected) in [
            ("https://index.example.com/", Some("index.example.com")),
            ("sparse+https://index.example.com/x/", Some("index.example.com")),
            ("HTTPS://u:p@Example.com:8443/x", Some("example.com:8443")),
            ("http://mirror.example.com/debian", Some("mirror.example.com:80")),
            ("ssh://git@example.com/x", Some("example.com:22")),
            ("https://[2001:db8::1]/x", Some("[2001:db8::1]")),
            ("https://example.com?x", Some("example.com")),
            ("file:///x", None),
            ("https://", None),
            ("https://*/x", None),
            ("https://*.example.com/x", None),
            ("https://a b/x", None),
            ("example.com/x", None),
            ("mirror+file:/etc/apt/mirrors", None),
        ] {
            assert_eq!(host_pattern(url).as_deref(), expected, "{url}");
        }
    }
}
