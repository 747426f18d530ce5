//! Rules about settings of the program. A rule can only make a setting stricter, and the strictest
//! layer wins.

use std::collections::BTreeSet;
use std::fmt;

use crate::pattern::BaseUrl;
use crate::{DirectDirectory, SourceLocation, Verdict};

/// A value with its location in a policy file.
pub type Located<T> = (T, SourceLocation);

/// The rules of one layer about settings. An absent rule does not restrict the setting.
///
/// This struct is closed: a program that lists the rules about its settings has to name each one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingRules {
    /// Whether an audit log is written; `true` is stricter.
    pub audit_enabled: Option<Located<bool>>,
    /// Whether every action must be recorded in the audit log; `true` is stricter.
    pub audit_required: Option<Located<bool>>,
    /// Whether commands may reach the network; `false` is stricter.
    pub network: Option<Located<bool>>,
    /// The verdict about hosts that no list under `[commands.network]` contains; `deny` is the
    /// strictest.
    pub unlisted_hosts: Option<Located<Verdict>>,
    /// Paths that commands may be allowed to read in addition to the default ones: only these, and
    /// paths below them.
    pub read: Option<Located<Vec<String>>>,
    /// Paths that commands may be allowed to write in addition to the default ones: only these, and
    /// paths below them.
    pub write: Option<Located<Vec<String>>>,
    /// Directories of the workspace that commands may be allowed to write directly: only these, and
    /// directories below them.
    pub direct: Option<Located<Vec<DirectDirectory>>>,
    /// The allowed model providers.
    pub providers: Option<Located<BTreeSet<String>>>,
    /// The allowed base URLs of models. If absent while `providers` is present, only the default
    /// URL of each provider is allowed.
    pub base_urls: Option<Located<Vec<BaseUrl>>>,
    /// Digests of the allowed plugins, without `sha256:`.
    pub digests: Option<Located<BTreeSet<String>>>,
    /// The allowed origins of plugins.
    pub sources: Option<Located<Vec<PluginOrigin>>>,
    /// Whether every prompt must be recorded in a session; `true` is stricter.
    pub session_required: Option<Located<bool>>,
    /// Whether sessions may be saved on disk; `false` is stricter.
    pub session_keep: Option<Located<bool>>,
}

/// An allowed origin of plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginOrigin {
    /// A server, at or below this URL.
    Url(BaseUrl),
    /// A file at or below this absolute path.
    Path(String),
}

impl PluginOrigin {
    /// Parses an absolute path or a URL pattern.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if the text is neither.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if is_normalized_absolute(text) {
            return Ok(Self::Path(text.trim_end_matches('/').to_owned()));
        }
        BaseUrl::parse_pattern(text).map(Self::Url).map_err(|problem| {
            format!(
                "{problem}; an absolute path such as /opt/plugins is \
                allowed too"
            )
        })
    }

    /// Returns whether this origin covers a plugin, identified by its URL or by its absolute path
    /// with links resolved.
    pub fn covers(&self, origin: &str) -> bool {
        match self {
            Self::Url(url) => url.covers(origin),
            Self::Path(path) => is_within(origin, path),
        }
    }
}

impl fmt::Display for PluginOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => url.fmt(f),
            Self::Path(path) if path.is_empty() => f.write_str("/"),
            Self::Path(path) => f.write_str(path),
        }
    }
}

/// Returns whether a text is an absolute path without `.`, `..` and NUL bytes.
pub(super) fn is_normalized_absolute(text: &str) -> bool {
    text.starts_with('/')
        && !text.split('/').any(|part| matches!(part, "." | ".."))
        && !text.contains('\0')
}

/// Returns whether a normalized absolute path is `outer` or lies below it.
pub(crate) fn is_within(path: &str, outer: &str) -> bool {
    let outer = outer.trim_end_matches('/');
    is_normalized_absolute(path)
        && (path.trim_end_matches('/') == outer
            || path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_comes_from_below_a_path_or_an_address() {
        let covers =
            |rule: &str, origin: &str| PluginOrigin::parse(rule).expect(rule).covers(origin);
        assert!(
            covers("/opt/plugins", "/opt/plugins/a.wasm")
                && covers("/opt/plugins/", "/opt/plugins")
                && covers("/", "/x.wasm")
        );
        assert!(
            !covers("/opt/plugins", "/opt/plugins2/a.wasm")
                && !covers("/opt/plugins", "/opt/plugins/../x.wasm")
        );
        assert!(
            !covers("/opt/plugins", "opt/plugins/a.wasm")
                && !covers("/opt/plugins", "https://x/opt/plugins")
        );
        assert!(covers("https://plugins.example.com", "https://plugins.example.com/a.wasm"));
        for text in ["opt", "../x", "/a/../b", "", "https://"] {
            assert!(PluginOrigin::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_origin_is_shown_without_a_slash_at_its_end() {
        for (text, shown) in [
            ("/", "/"),
            ("/opt/plugins/", "/opt/plugins"),
            ("https://plugins.example.com/a/", "https://plugins.example.com/a/"),
        ] {
            assert_eq!(PluginOrigin::parse(text).expect(text).to_string(), shown);
        }
    }
}
