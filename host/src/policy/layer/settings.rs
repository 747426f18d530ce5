//! What a layer says about settings of the program. Each of these can only be made stricter: the
//! strictest layer wins.

use std::collections::BTreeSet;
use std::fmt;

use crate::policy::SourceLocation;
use crate::policy::pattern::BaseUrl;

/// A value with its place.
pub type Located<T> = (T, SourceLocation);

/// The rules of one layer about settings. What is absent says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingRules {
    /// Whether an audit log is kept; `true` is the stricter.
    pub audit_enabled: Option<Located<bool>>,
    /// Whether nothing may happen without its record; `true` is the stricter.
    pub audit_required: Option<Located<bool>>,
    /// Whether commands may reach the network; `false` is the stricter.
    pub network: Option<Located<bool>>,
    /// What commands may read besides the usual: at most what is at or below these paths.
    pub read: Option<Located<Vec<String>>>,
    /// What commands may write besides the usual: at most what is at or below these paths.
    pub write: Option<Located<Vec<String>>>,
    /// Providers of models.
    pub providers: Option<Located<BTreeSet<String>>>,
    /// Addresses of models. If absent while `providers` is present, each provider is reached at its
    /// own address only.
    pub base_urls: Option<Located<Vec<BaseUrl>>>,
    /// Digests of plugins that may be loaded, without `sha256:`.
    pub digests: Option<Located<BTreeSet<String>>>,
    /// Where plugins may come from.
    pub sources: Option<Located<Vec<PluginOrigin>>>,
    /// Whether every request has to be on record in a session; `true` is the stricter.
    pub session_required: Option<Located<bool>>,
    /// Whether sessions may be kept on the disk; `false` is the stricter.
    pub session_keep: Option<Located<bool>>,
}

/// Where a plugin may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginOrigin {
    /// A server, at this address or below.
    Url(BaseUrl),
    /// A file at this absolute path, or below it.
    Path(String),
}

impl PluginOrigin {
    /// Reads an absolute path or an address.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if is_normalized_absolute(text) {
            return Ok(Self::Path(text.trim_end_matches('/').to_owned()));
        }
        BaseUrl::parse_pattern(text)
            .map(Self::Url)
            .map_err(|problem| format!("{problem}; or an absolute path such as /opt/plugins"))
    }

    /// Whether it covers where a plugin comes from: its address, or its absolute path without
    /// links.
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

/// Whether a text is an absolute path that says where it leads, without `.` or `..`.
pub(super) fn is_normalized_absolute(text: &str) -> bool {
    text.starts_with('/')
        && !text.split('/').any(|part| matches!(part, "." | ".."))
        && !text.contains('\0')
}

/// Whether a plain absolute path is another one or lies below it.
pub(in crate::policy) fn is_within(path: &str, outer: &str) -> bool {
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
}
