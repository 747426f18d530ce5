//! The source of a plugin: a file or an address.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::Url;

use crate::config::resolve_links;

/// A source that a plugin can be fetched from repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginSource {
    /// A file, by its absolute path.
    File(PathBuf),
    /// An address that [`PluginSource::parse`] accepted.
    Url(Url),
}

/// The reason why a source is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The text is not a valid address.
    #[error("invalid URL `{0}`: {1}")]
    InvalidUrl(String, String),
    /// The address contains a name or a password, which the lock file would contain as well.
    #[error(
        "the URL contains a user name or password, which would be saved with the plugin; download \
            the file and add it instead"
    )]
    Credentials,
    /// The connection would not be encrypted, so the content could come from anyone.
    #[error("cannot fetch `{0}`: use an https URL or the path of a file")]
    InsecureUrl(String),
    /// The current directory is unknown, so a relative path cannot be resolved.
    #[error("cannot resolve the path `{0}`: {1}")]
    NoCurrentDirectory(String, String),
}

impl PluginSource {
    /// Parses a source: text with a scheme is an address, any other text is a path.
    ///
    /// # Errors
    /// The address is invalid, insecure or contains credentials.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        if !text.contains("://") {
            let absolute = std::path::absolute(Path::new(text));
            return absolute.map(Self::File).map_err(|error| {
                SourceError::NoCurrentDirectory(text.to_owned(), error.to_string())
            });
        }
        let url = Url::parse(text)
            .map_err(|error| SourceError::InvalidUrl(text.to_owned(), error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SourceError::Credentials);
        }
        if is_secure(&url) || is_loopback_url(&url) {
            Ok(Self::Url(url))
        } else {
            Err(SourceError::InsecureUrl(text.to_owned()))
        }
    }

    /// Returns the origin of the plugin that rules of the policy can match: the path with links
    /// resolved, or the address.
    pub fn policy_origin(&self) -> String {
        match self {
            Self::File(path) => resolve_links(path).display().to_string(),
            Self::Url(url) => url.to_string(),
        }
    }

    /// Returns the default name of the plugin: the file name without its extension.
    pub fn default_plugin_name(&self) -> String {
        let file_name = match self {
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Url(url) => url
                .path_segments()
                .and_then(|mut segments| segments.next_back())
                .unwrap_or_default()
                .to_owned(),
        };
        file_name.strip_suffix(".wasm").unwrap_or(&file_name).to_owned()
    }
}

impl fmt::Display for PluginSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(url) => url.fmt(f),
        }
    }
}

fn is_secure(url: &Url) -> bool {
    url.scheme() == "https" && url.has_host()
}

/// Returns whether a URL refers to this machine.
///
/// Only the address itself counts, since a host name can resolve to anything.
pub(super) fn is_loopback_url(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    matches!(url.scheme(), "http" | "https") && is_loopback
}

/// Returns whether a redirect is allowed.
///
/// A redirect must not lead to an unencrypted connection, nor from another machine to this one.
pub(super) fn allows_redirect(from: &Url, to: &Url) -> bool {
    match (is_loopback_url(from), is_loopback_url(to)) {
        (true, true) => from.scheme() == to.scheme() || is_secure(to),
        (true | false, false) => is_secure(to),
        (false, true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_must_be_encrypted_or_local() {
        let table = [
            ("https://example.org/a.wasm", None),
            ("http://127.0.0.1:8000/a.wasm", None),
            ("http://[::1]/a.wasm", None),
            ("http://localhost/a.wasm", None),
            ("http://example.org/a.wasm", Some("use an https URL")),
            ("http://127.0.0.1.example.org/a.wasm", Some("use an https URL")),
            ("http://localhost.example.org/a.wasm", Some("use an https URL")),
            ("ftp://127.0.0.1/a.wasm", Some("use an https URL")),
            ("file:///a.wasm", Some("the path of a file")),
            ("https://me:secret@example.org/a.wasm", Some("a user name or password")),
            ("https://", Some("invalid URL")),
        ];
        for (text, problem) in table {
            match (PluginSource::parse(text), problem) {
                (Ok(PluginSource::Url(_)), None) => {}
                (Err(error), Some(problem)) => {
                    assert!(error.to_string().contains(problem), "{text}: {error}")
                }
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
        assert!(matches!(
            PluginSource::parse("a.wasm"),
            Ok(PluginSource::File(path)) if path.is_absolute()
        ));
    }

    #[test]
    fn a_redirect_must_not_be_less_secure() {
        let table = [
            ("https://a.org/x", "https://b.org/y", true),
            ("https://a.org/x", "http://a.org/x", false),
            ("https://a.org/x", "https://127.0.0.1/y", false),
            ("https://a.org/x", "http://localhost/y", false),
            ("http://127.0.0.1/x", "http://127.0.0.1:99/y", true),
            ("https://localhost/x", "http://localhost/y", false),
            ("http://127.0.0.1/x", "http://a.org/y", false),
            ("http://127.0.0.1/x", "https://a.org/y", true),
        ];
        for (from, to, allowed) in table {
            let url = |text| Url::parse(text).expect("it is an address");
            assert_eq!(allows_redirect(&url(from), &url(to)), allowed, "{from} to {to}");
        }
    }

    #[test]
    fn the_default_plugin_name_is_the_file_name() {
        let name =
            |text: &str| PluginSource::parse(text).map(|source| source.default_plugin_name());
        assert_eq!(name("https://example.org/x/word_count.wasm?v=2#top"), Ok("word_count".into()));
        assert_eq!(name("some/where/word_count.wasm"), Ok("word_count".into()));
        assert_eq!(name("https://example.org"), Ok(String::new()));
    }
}
