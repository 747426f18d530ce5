//! The hosts that presets find in the files of a machine.

use super::*;

/// A machine with these files. `~` is the home directory.
struct PresetMachine(tempfile::TempDir);

impl PresetMachine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().expect("a directory"));
        for (path, text) in files {
            let path = machine.path(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("it is made");
            fs::write(path, text).expect("it is written");
        }
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.replace('~', "home/me").trim_start_matches('/'))
    }

    fn search(&self) -> PresetSearch {
        PresetSearch {
            root: self.0.path().to_owned(),
            home: Some(self.path("~")),
            ..PresetSearch::default()
        }
    }

    fn find(&self, preset: NetworkPreset) -> Vec<String> {
        preset.find_hosts(&self.search()).hosts.into_keys().collect()
    }
}

#[test]
fn rust_is_the_registries_of_the_configuration_and_the_used_indexes() {
    let index = "~/.cargo/registry/index";
    let machine = PresetMachine::new(&[
        (
            "~/.cargo/config.toml",
            "[registries.mine]\nindex = \"sparse+https://mine.example.com/index/\"\n[source.x]\n\
                registry = \"https://mirror.example.com:8443/x\"\n[source.y]\ndirectory = \"v\"\n",
        ),
        (
            &format!("{index}/index.example.com-0123456789abcdef/config.json"),
            "{\"dl\": \"https://static.example.com/crates\", \"api\": \"https://example.com\"}",
        ),
        (&format!("{index}/old.example.com-fedcba9876543210/.last-updated"), ""),
        (&format!("{index}/evil.example.com/config.json"), "{\"dl\": \"https://evil.org\"}"),
        (&format!("{index}/evil.example.com-short/config.json"), "{\"dl\": \"https://evil.org\"}"),
    ]);
    let expected = [
        "index.example.com",
        "mine.example.com",
        "mirror.example.com:8443",
        "old.example.com",
        "static.example.com",
    ];
    assert_eq!(machine.find(NetworkPreset::Rust), expected);
    assert_eq!(PresetMachine::new(&[]).find(NetworkPreset::Rust), [""; 0]);
}

#[test]
fn node_is_the_registry_of_npmrc_or_the_default_of_npm() {
    let definitions = "define('registry', {\n  default: 'https://registry.example.com/',\n})";
    let installed =
        ("/usr/share/nodejs/@npmcli/config/lib/definitions/definitions.js", definitions);
    let npm = ("/usr/share/nodejs/npm/package.json", "{}");
    let scope = ("~/.npmrc", "@mine:registry=https://mine.example.com/npm/\n//x/:_authToken=t\n");
    let own = ("~/.npmrc", "registry = \"https://own.example.com\"\n");
    for (files, expected) in [
        (vec![installed, npm], vec!["registry.example.com"]),
        (vec![installed, npm, scope], vec!["mine.example.com", "registry.example.com"]),
        (vec![installed, npm, own], vec!["own.example.com"]),
        (vec![], vec![]),
    ] {
        assert_eq!(PresetMachine::new(&files).find(NetworkPreset::Node), expected);
    }
}

#[test]
fn python_is_the_index_of_pip_or_its_default() {
    let defaults = (
        "/usr/lib/python3/dist-packages/pip/_internal/models/index.py",
        "class PackageIndex:\n    pass\n\nPyPI = PackageIndex(\"https://index.example.com/\", \
            file_storage_domain=\"files.example.com\")\n\nTestPyPI = \
            PackageIndex(\"https://test.example.com/\", file_storage_domain=\"t.example.com\")\n",
    );
    let extra = (
        "~/.config/pip/pip.conf",
        "[global]\nextra-index-url =\n  https://a.example.com\n  \
        https://b.example.com/x\ntimeout = 60\n",
    );
    let own = ("~/.pip/pip.conf", "[global]\nindex_url: http://own.example.com:3141/simple\n");
    for (files, expected) in [
        (vec![defaults], vec!["files.example.com", "index.example.com"]),
        (
            vec![defaults, extra],
            vec!["a.example.com", "b.example.com", "files.example.com", "index.example.com"],
        ),
        (vec![defaults, own], vec!["own.example.com:3141"]),
        (vec![], vec![]),
    ] {
        assert_eq!(PresetMachine::new(&files).find(NetworkPreset::Python), expected);
    }
}

#[test]
fn go_is_the_proxy_and_the_checksum_database() {
    let defaults = (
        "/usr/lib/go-1.24/go.env",
        "# defaults\nGOPROXY=https://proxy.example.com,direct\nGOSUMDB=sum.example.com\n",
    );
    let own = ("~/.config/go/env", "GOPROXY=https://a.example.com|http://b.example.com,off\n");
    let off = ("~/.config/go/env", "GOSUMDB=off\n");
    let key =
        ("~/.config/go/env", "GOSUMDB=sum.example.org+033de0ae+Ac4 https://s.example.org/x\n");
    for (files, expected) in [
        (vec![defaults], vec!["proxy.example.com", "sum.example.com"]),
        (vec![defaults, own], vec!["a.example.com", "b.example.com:80", "sum.example.com"]),
        (vec![defaults, off], vec!["proxy.example.com"]),
        (vec![defaults, key], vec!["proxy.example.com", "s.example.org"]),
        (vec![], vec![]),
    ] {
        assert_eq!(PresetMachine::new(&files).find(NetworkPreset::Go), expected);
    }
}

#[test]
fn debian_is_the_enabled_sources_of_apt() {
    let machine = PresetMachine::new(&[
        (
            "/etc/apt/sources.list",
            "# deb http://old.example.com x\ndeb [arch=amd64] http://a.example.com/debian stable \
                main # x\nfoo http://no.example.com x\n",
        ),
        (
            "/etc/apt/sources.list.d/b.sources",
            "Types: deb\nURIs: https://b.example.com/debian\n  http://c.example.com\nSuites: \
                x\n\nEnabled: no\nTypes: deb\nURIs: http://disabled.example.com\n",
        ),
        ("/etc/apt/sources.list.d/c.list.save", "deb http://saved.example.com x\n"),
    ]);
    let expected = ["a.example.com:80", "b.example.com", "c.example.com:80"];
    assert_eq!(machine.find(NetworkPreset::Debian), expected);
}

#[test]
fn git_is_well_known_forges_and_those_of_the_users_configuration() {
    let machine = PresetMachine::new(&[(
        "~/.gitconfig",
        "[user]\nname = A\n[url \"ssh://git@git.example.com:2222/\"]\ninsteadOf = x\n[credential \
            \"https://code.example.com\"]\nhelper = x\n[remote \"https://no.example.com\"]\n",
    )]);
    let found = machine.find(NetworkPreset::Git);
    for expected in ["github.com", "github.com:22", "git.example.com:2222", "code.example.com"] {
        assert!(found.iter().any(|host| host == expected), "{expected}: {found:?}");
    }
    assert!(!found.iter().any(|host| host == "no.example.com"), "{found:?}");
}

#[test]
fn files_of_the_workspace_and_files_that_commands_write_count_for_nothing() {
    let index = "registry/index/evil.example.com-0123456789abcdef/config.json";
    let machine = PresetMachine::new(&[
        (&format!("~/project/.cargo/{index}"), "{\"dl\": \"https://evil.org\"}"),
        (&format!("~/.cargo/{index}"), "{\"dl\": \"https://evil.org\"}"),
        ("~/project/.npmrc", "registry=https://evil.org\n"),
        ("~/project/env", "GOPROXY=https://evil.org\n"),
        ("~/project/pip.conf", "[global]\nindex-url = https://evil.org\n"),
    ]);
    // The user's own npmrc is a link into the workspace.
    std::os::unix::fs::symlink(machine.path("~/project/.npmrc"), machine.path("~/.npmrc"))
        .expect("a link");
    let variables = [
        ("CARGO_HOME", "~/project/.cargo"),
        ("GOENV", "~/project/env"),
        ("PIP_CONFIG_FILE", "~/project/pip.conf"),
        ("PATH", "~/project/bin"),
    ];
    let mut search = machine.search();
    search.variables = variables
        .iter()
        .map(|(name, path)| (OsString::from(name), machine.path(path).into_os_string()))
        .collect();
    let found = |search: &PresetSearch| -> Vec<String> {
        NetworkPreset::ALL
            .iter()
            .filter(|preset| **preset != NetworkPreset::Git)
            .flat_map(|preset| preset.find_hosts(search).hosts.into_keys())
            .collect()
    };
    assert!(found(&search).contains(&"evil.org".to_owned()), "the files are in their places");
    search.untrusted = vec![machine.path("~/project")];
    assert_eq!(found(&search), [""; 0]);
    // Directories that commands can write.
    search.variables.clear();
    assert!(found(&search).contains(&"evil.org".to_owned()));
    search.untrusted.push(machine.path("~/.cargo"));
    assert_eq!(found(&search), [""; 0]);
}
