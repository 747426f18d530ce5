//! The paths outside the workspace that a command can see.
//!
//! These are the system's programs, the parts of `/etc` that they need, and the toolchains in the
//! user's home. The rest of the home and all files with keys are invisible.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::protocol::CommandPaths;
use crate::path_resolver::PathResolver;
use cofferdam_policy::{CommandNetwork, CommandRules};

const SYSTEM_PATHS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/run/current-system/sw",
    "/home/linuxbrew/.linuxbrew",
    "/sys/devices/system/cpu",
];

/// The visible entries of `/etc`: names, users, certificates, and the configuration of program
/// lookup. `shadow` and keys are missing.
const ETC_ENTRIES: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "default/locale",
    "fonts",
    "gitconfig",
    "group",
    "host.conf",
    "hosts",
    "inputrc",
    "issue",
    "java-17-openjdk",
    "java-21-openjdk",
    "java-25-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "mime.types",
    "nanorc",
    "networks",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "rpc",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "static",
    "subgid",
    "subuid",
    "terminfo",
    "timezone",
    "xattr.conf",
];

/// The visible entries of `/etc` for name resolution, if the network is allowed.
const ETC_NETWORK_ENTRIES: &[&str] = &["gai.conf", "resolv.conf"];

/// The visible entries of the home: toolchains, caches of package managers, and git's settings,
/// which commits need.
const HOME_ENTRIES: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".bun/install",
    ".cabal/bin",
    ".cargo/bin",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".composer/vendor",
    ".config/composer/vendor",
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".deno/bin",
    ".dotnet/dotnet",
    ".dotnet/host",
    ".dotnet/packs",
    ".dotnet/sdk",
    ".dotnet/shared",
    ".dotnet/tools",
    ".elan",
    ".fnm",
    ".foundry/bin",
    ".gem/ruby",
    ".ghcup",
    ".gitconfig",
    ".gradle/caches",
    ".gradle/wrapper",
    ".ivy2/cache",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx/venvs",
    ".local/share/fnm",
    ".local/share/mise/installs",
    ".local/share/mise/shims",
    ".local/share/pipx/venvs",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".m2/repository",
    ".mix",
    ".npm-global",
    ".npm-packages",
    ".nuget/packages",
    ".nvm",
    ".opam",
    ".pixi",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".rye/py",
    ".rye/self",
    ".rye/shims",
    ".rye/uv",
    ".sdkman",
    ".stack/programs",
    ".swiftly",
    ".tool-versions",
    ".volta",
    "anaconda3",
    "go/bin",
    "go/pkg",
    "miniconda3",
];

/// Variables that name the directory of a toolchain.
const TOOLCHAIN_VARIABLES: &[&str] =
    &["GOROOT", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "RUSTUP_HOME", "VIRTUAL_ENV"];
/// The visible entries of `CARGO_HOME`, which also holds credentials.
const CARGO_HOME_ENTRIES: &[&str] = &["bin", "config", "config.toml", "env", "git", "registry"];
/// The visible entries of `GOPATH`, which also holds the user's own projects.
const GOPATH_ENTRIES: &[&str] = &["bin", "pkg"];

/// Returns the existing visible paths for a user with this home and environment.
pub(super) fn find_command_paths(
    rules: &CommandRules,
    home: Option<&Path>,
    variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    resolver: &PathResolver,
) -> CommandPaths {
    let mut read: Vec<PathBuf> = SYSTEM_PATHS.iter().map(PathBuf::from).collect();
    let etc = Path::new("/etc");
    read.extend(ETC_ENTRIES.iter().map(|name| etc.join(name)));
    if rules.network == CommandNetwork::All {
        read.extend(ETC_NETWORK_ENTRIES.iter().map(|name| etc.join(name)));
        // The target of the link `resolv.conf`.
        read.extend(resolver.canonicalize(&etc.join("resolv.conf")));
    }
    let mut named: Vec<PathBuf> =
        TOOLCHAIN_VARIABLES.iter().filter_map(|name| variable(name)).map(PathBuf::from).collect();
    named.extend(
        variable("PATH").iter().flat_map(|path| std::env::split_paths(path).collect::<Vec<_>>()),
    );
    let cargo_home = variable("CARGO_HOME").map(PathBuf::from);
    named.extend(
        cargo_home
            .iter()
            .flat_map(|folder| CARGO_HOME_ENTRIES.iter().map(|name| folder.join(name))),
    );
    named.extend(
        variable("GOPATH")
            .iter()
            .flat_map(std::env::split_paths)
            .flat_map(|path| GOPATH_ENTRIES.iter().map(move |name| path.join(name))),
    );
    let places = home.map(|home| HomePlaces::new(home, resolver));
    if let Some((home, places)) = home.zip(places.as_ref()) {
        read.extend(
            HOME_ENTRIES
                .iter()
                .map(|name| home.join(name))
                .filter(|path| resolver.exists(path) && places.may_show(&resolver.real(path))),
        );
    }
    read.extend(named.iter().filter_map(|path| shown_by_variable(path, places.as_ref(), resolver)));
    read.extend(rules.read.iter().cloned());
    // The request to the supervisor is JSON, which cannot hold paths that are not UTF-8.
    read.retain(|path| resolver.exists(path) && path.to_str().is_some());
    read.sort();
    read.dedup();
    let covered: Vec<bool> = read
        .iter()
        .enumerate()
        .map(|(at, path)| {
            read[..at]
                .iter()
                .any(|outer| path.starts_with(outer) && outer.file_name() != Some(OsStr::new("")))
        })
        .collect();
    let mut covered = covered.into_iter();
    read.retain(|_| !covered.next().unwrap_or_default());
    let write = rules.write.iter().filter(|path| resolver.exists(path)).cloned().collect();
    CommandPaths { read, write, list: Vec::new() }
}

/// Private files and directories of a home directory, which no toolchain needs.
const PRIVATE: &[&str] = &[
    ".aws",
    ".azure",
    ".config",
    ".docker",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".local/state",
    ".netrc",
    ".ssh",
];

/// The places of the user's home directory and of the private entries in it.
struct HomePlaces {
    /// The path as the environment names it, and the path without links, if that is another one.
    spellings: Vec<PathBuf>,
    /// The private directories and files in both spellings, each with its name in the home.
    private: Vec<(&'static str, PathBuf)>,
}

impl HomePlaces {
    fn new(written: &Path, resolver: &PathResolver) -> Self {
        let mut spellings = vec![written.to_owned()];
        spellings.extend(resolver.canonicalize(written));
        spellings.dedup();
        let private = spellings
            .iter()
            .flat_map(|home| PRIVATE.iter().map(move |name| (*name, home.join(name))))
            .collect();
        Self { spellings, private }
    }

    /// Returns whether commands may see a path without links.
    ///
    /// It must not contain the home directory or a private directory, nor be inside a private
    /// directory.
    fn may_show(&self, real: &Path) -> bool {
        // Toolchains can be below `.config` too.
        let is_private = |(name, private): &(&str, PathBuf)| {
            private.starts_with(real) || *name != ".config" && real.starts_with(private)
        };
        !self.spellings.iter().any(|home| home.starts_with(real))
            && !self.private.iter().any(is_private)
    }
}

/// Returns the path under which commands see a directory that a variable names.
///
/// Returns `None` if it would expose the home directory, `/etc`, or a top-level directory. A path
/// with `..` is replaced by its target.
fn shown_by_variable(
    path: &Path,
    home: Option<&HomePlaces>,
    resolver: &PathResolver,
) -> Option<PathBuf> {
    let real = resolver.canonicalize(path).ok()?;
    let is_harmless = |path: &Path| {
        path.is_absolute() && path.components().count() > 2 && !path.starts_with("/etc")
    };
    let has_way_up = path.components().any(|component| component == Component::ParentDir);
    let is_shown =
        path.is_absolute() && is_harmless(&real) && home.is_none_or(|home| home.may_show(&real));
    is_shown.then(|| if has_way_up || !is_harmless(path) { real } else { path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_paths(
        home: Option<&Path>,
        variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> CommandPaths {
        find_command_paths(&CommandRules::default(), home, variable, &PathResolver::default())
    }

    #[test]
    fn a_home_is_not_shown_by_another_spelling_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().canonicalize().expect("it is there");
        let home = base.join("users/me");
        for path in ["bin", ".ssh", ".local/state", ".local/bin", ".config/tool/bin", "tools/bin"] {
            std::fs::create_dir_all(home.join(path)).expect("it is made");
        }
        std::os::unix::fs::symlink(&home, base.join("link")).expect("a link");
        std::os::unix::fs::symlink(&base, home.join("up")).expect("a link");
        let table = [
            ("users/me", false),
            ("users/me/bin/..", false),
            ("users/me/../me", false),
            ("users/me/tools/bin/../..", false),
            ("link", false),
            ("link/bin/..", false),
            ("users/me/up", false),
            ("users/me/.ssh", false),
            ("users/me/.local", false),
            ("users/me/bin/../.local/state", false),
            ("users/me/bin", true),
            ("link/bin", true),
            ("users/me/tools/../bin", true),
            ("users/me/.config/tool/bin", true),
        ];
        for written in [&home, &base.join("link")] {
            for (path, is_shown) in table {
                for name in ["PATH", "JAVA_HOME"] {
                    let variable =
                        |asked: &str| (asked == name).then(|| base.join(path).into_os_string());
                    let without = find_paths(Some(written), |_| None).read;
                    let with = find_paths(Some(written), variable).read;
                    assert_eq!(
                        with != without,
                        is_shown,
                        "{name}={path} with the home {}: {with:?}",
                        written.display()
                    );
                }
            }
        }
    }

    #[test]
    fn a_home_is_not_shown_by_a_variable() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(home.path().join(".cargo/bin")).expect("it is made");
        std::fs::create_dir_all(home.path().join(".ssh")).expect("it is made");
        let variable = |name: &str| match name {
            "PATH" => Some(
                std::env::join_paths([home.path(), Path::new("/"), Path::new("relative")])
                    .expect("they join"),
            ),
            "GOPATH" => Some(home.path().parent().expect("it has a parent").into()),
            _ => None,
        };
        let places = find_paths(Some(home.path()), variable);
        let below: Vec<_> =
            places.read.iter().filter(|path| path.starts_with(home.path())).collect();
        assert_eq!(below, [&home.path().join(".cargo/bin")]);
        assert!(!places.read.iter().any(|path| home.path().starts_with(path)), "{places:?}");
        assert!(
            !places.read.iter().any(|path| path.ends_with("shadow") || path == Path::new("/etc"))
        );
    }

    #[test]
    fn keys_that_lie_beside_toolchains_are_not_shown() {
        let home = tempfile::tempdir().expect("a folder");
        let make = |path: &str, text: &str| {
            std::fs::create_dir_all(home.path().join(path).parent().expect("a parent"))
                .expect("it is made");
            std::fs::write(home.path().join(path), text).expect("it is written");
        };
        let keys = [
            ".local/share/uv/credentials/c.toml",
            ".dotnet/corefx/cryptography/x509stores/my/k.pfx",
            "go/src/p/.env",
            "work/src/.env",
        ];
        let tools = [".local/share/uv/tools/t", ".dotnet/sdk/s", "go/pkg/mod/m", "work/bin/b"];
        keys.iter().chain(&tools).for_each(|path| make(path, ""));
        let variable = |name: &str| (name == "GOPATH").then(|| home.path().join("work").into());
        let shows = |path: &str| {
            let places = find_paths(Some(home.path()), variable);
            places.read.iter().any(|place| home.path().join(path).starts_with(place))
        };
        assert_eq!(keys.map(shows), [false; 4]);
        assert_eq!(tools.map(shows), [true; 4]);
    }
}
