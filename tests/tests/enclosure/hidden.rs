//! Secrets and files that other programs run, by every way that leads to them.

use std::os::unix::fs::symlink;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{TestGuest, TestHost};

use crate::assert_contains;
use crate::overlay::edit_host;

#[test]
fn a_hidden_file_is_seen_and_not_read_whatever_way_leads_to_it() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("open-path").with_requested(&[Capability::ReadFiles]),
    );
    test_host.write_file(".env", "KEY=1");
    test_host.write_file("deep/er/.env.local", "KEY=2");
    test_host.write_file("keys/id_ed25519", "KEY=3");
    test_host.write_file(".env.example", "KEY=");
    symlink(".env", test_host.workspace_dir().join("harmless")).expect("a link");
    symlink("deep/er", test_host.workspace_dir().join("short")).expect("a link");
    symlink(test_host.workspace_dir().join("keys"), test_host.workspace_dir().join("absolute"))
        .expect("a link");
    let ways = [
        ".env",
        "./deep/../.env",
        "harmless",
        "deep/er/.env.local",
        "short/.env.local",
        "keys/id_ed25519",
        "absolute/id_ed25519",
    ];
    for path in ways {
        let text = test_host.call_ok("open_path", &serde_json::json!({ "path": path }).to_string());
        assert!(text.starts_with("error 0\n") && !text.contains("KEY"), "{path}: {text}");
        assert_contains(&text, "[host: denied (hidden): `");
    }
    assert_eq!(test_host.call_ok("open_path", r#"{"path":".env.example"}"#), "read KEY=");
    test_host.assert_healthy();
}

#[test]
fn a_walk_names_hidden_files_and_does_not_read_them() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("walk-files").with_requested(&[Capability::ReadFiles]),
    );
    test_host.write_file(".env", "KEY=1");
    test_host.write_file(".aws/credentials", "KEY=2");
    test_host.write_file("file", "content");
    symlink(".aws", test_host.workspace_dir().join("clouds")).expect("a link");
    let text = test_host.call_ok("walk_files", r#"{"root":""}"#);
    assert!(text.starts_with("file file\ncontent\n[host: denied (hidden): "), "{text}");
    for kept in [".env", ".aws/credentials"] {
        assert_contains(&text, &format!("[host: denied (hidden): `{kept}` is hidden"));
    }
    for root in [".aws", "clouds", ".env"] {
        let text = test_host.call_ok("walk_files", &format!(r#"{{"root":"{root}"}}"#));
        assert!(!text.contains("KEY"), "{root}: {text}");
    }
}

#[test]
fn a_plugin_that_may_write_plants_no_hook() {
    let steps = r#"
        (call $create @".git/hooks/pre-commit" @"evil")
        (call $overwrite @".git/config" @"[core]\nfsmonitor=evil")
        (call $rename @".git" @".git2")
        (call $mkdir @"sub/.git")
        (call $create @"sub/.git/config" @"evil")
        (call $mkdir @"sub/.git/hooks")
        (call $mkdir @"innocent")
        (call $mkdir @"innocent/hooks")
        (call $create @"innocent/hooks/pre-commit" @"evil")
        (call $rename @"innocent" @"other/.git")
        (call $symlink @"innocent" @"sub2.git")
        (call $symlink @"innocent" @".git/modules")
        (call $create @".GIT/HOOKS/x" @"evil")
        (call $mkdir @".vscode")
        (call $create @".vscode/tasks.json" @"evil")
        (call $rename @"innocent/hooks/pre-commit" @".bashrc")
        (call $create @".git" @"gitdir: innocent")
        (call $delete @".git/config")
        (call $rmdir @".git")
    "#;
    let test_host = edit_host(steps);
    test_host.write_file(".git/config", "mine");
    test_host.write_file(".git/hooks/pre-push", "mine");
    test_host.write_file("other/file", "");
    test_host.write_file("sub/file", "");
    let text = test_host.call_ok("edit", "{}");
    let refused: Vec<&str> = text.lines().filter(|line| line.contains(" error ")).collect();
    assert_eq!(refused.len(), 14, "{text}");
    assert_contains(&text, "denied (protected): `.git/hooks/pre-commit` is read-only for tools");
    let content = |path: &str| {
        std::fs::read_to_string(test_host.workspace_dir().join(path)).expect("it is there")
    };
    assert_eq!(
        (content(".git/config"), content(".git/hooks/pre-push")),
        ("mine".into(), "mine".into())
    );
    for path in [
        ".git2",
        ".git/hooks/pre-commit",
        "other/.git",
        "sub/.git/config",
        "sub/.git/hooks",
        ".GIT",
        ".vscode",
        ".bashrc",
    ] {
        assert!(!test_host.workspace_dir().join(path).exists(), "{path} was made");
    }
    test_host.assert_healthy();
}

#[test]
fn what_is_hidden_does_not_move_to_where_it_could_be_read() {
    let steps = r#"
        (call $rename @".env" @"plain")
        (call $rename @"dir" @"dir2")
        (call $read @"plain")
        (call $read @"dir2/.env")
        (call $overwrite @".env" @"gone")
    "#;
    let test_host = edit_host(steps);
    test_host.write_file(".env", "KEY=1");
    test_host.write_file("dir/.env", "KEY=2");
    let text = test_host.call_ok("edit", "{}");
    assert!(
        !text.contains("KEY") && text.lines().filter(|line| line.contains(" error ")).count() == 5,
        "{text}"
    );
    assert_eq!(
        std::fs::read_to_string(test_host.workspace_dir().join(".env")).expect("it is there"),
        "KEY=1"
    );
}

const SETTINGS: &[(&str, &str, &str)] = &[
    (".git/config", "[remote \"o\"]\n\turl = https://u:SECRET@h/x\n", "url = \"https://h/x\""),
    (".npmrc", "//r/:_authToken=SECRET\nfund=false\n", "fund=false"),
    (".yarnrc.yml", "npmAuthToken: SECRET\nnodeLinker: pnp\n", "nodeLinker: pnp"),
    (".m2/settings.xml", "<id>a</id><password>SECRET</password>", "<id>a</id>"),
    (".cargo/config.toml", "[registries.r]\ntoken = \"SECRET\"\n", ""),
    ("pip.conf", "[global]\nindex-url = https://u:SECRET@h/s\n", "https://h/s"),
    ("gradle.properties", "signing.password=SECRET\nx=y\n", "x=y"),
    ("nuget.config", "<add key=\"Password\" value=\"SECRET\"/>", "<add key"),
    ("auth.json", "{\"http-basic\":{\"h\":{\"password\":\"SECRET\"}}}", "{}"),
    (".bunfig.toml", "[install]\ntoken = \"SECRET\"\nexact = true\n", "exact = true"),
    (".gemrc", ":rubygems_api_key: SECRET\n:verbose: true\n", ":verbose: true"),
    ("pdm.toml", "[pypi]\npassword = \"SECRET\"\nverify_ssl = true\n", "verify_ssl = true"),
    (".config/pnpm/rc", "_authToken=SECRET\nfund=false\n", "fund=false"),
    (".bazelrc", "build --remote_header=x-api-key=SECRET --jobs=4\n", "--jobs=4"),
    (".jvmopts", "-Dhttp.proxyPassword=SECRET\n-Xmx1g\n", "-Xmx1g"),
    (".sbtopts", "-Dhttp.proxyPassword=SECRET\n-Xmx1g\n", "-Xmx1g"),
    (".mavenrc", "MAVEN_OPTS=\"-Dhttp.proxyPassword=SECRET -Xmx1g\"\n", "-Xmx1g\""),
    (".gradle/init.gradle", "password \"SECRET\"\nurl 'u'\n", "url 'u'"),
    ("a/.npmrc", "#//r/:_authToken=SECRET\nfund=false\n", "fund=false"),
    (".hg/hgrc", "[auth]\nx.password = SECRET\n[paths]\ndefault = x\n", "default = x"),
    (".hgrc", "[auth]\nx.password = SECRET\n[ui]\nusername = me\n", "username = me"),
    ("terraform.rc", "credentials \"h\" {\n  token = \"SECRET\"\n}\n", "credentials"),
    (".cabal/config", "password: SECRET\njobs: 4\n", "jobs: 4"),
    (".config/go/env", "GOPROXY=https://u:SECRET@h\n", "GOPROXY=https://h"),
    ("mise.toml", "[env]\nAPI_TOKEN = \"SECRET\"\nA = \"b\"\n", "A = \"b\""),
    ("a/nuget.config", "<apikeys><add key=\"h\" value=\"SECRET\"/></apikeys>", "<apikeys>"),
    ("poetry.toml", "[pypi-token]\npypi = \"SECRET\"\n[a]\nb = 1\n", "b = 1"),
];

/// Settings that other settings include, under any name.
const INCLUDED: &[(&str, &str, &str)] = &[
    ("shared/team", "[http]\n\textraheader = SECRET\n[a]\n\tb = c\n", "b = \"c\""),
    ("shared/more", "[http]\n\textraheader = SECRET\n[a]\n\td = e\n", "d = \"e\""),
    (".cargo/more.toml", "[registry]\ntoken = \"SECRET\"\n[build]\njobs = 1\n", "jobs = 1"),
];

#[test]
fn tools_read_settings_without_the_secrets_in_them() {
    let reads = TestHost::with_guest(
        &TestGuest::from_file("open-path").with_requested(&[Capability::ReadFiles]),
    );
    let walks = TestHost::with_guest(
        &TestGuest::from_file("walk-files").with_requested(&[Capability::ReadFiles]),
    );
    for (path, text, _) in SETTINGS.iter().chain(INCLUDED) {
        reads.write_file(path, text);
        walks.write_file(path, text);
    }
    for test_host in [&reads, &walks] {
        let including = "[remote \"o\"]\n\turl = https://u:SECRET@h/x\n[include]\n\tpath = \
            ../shared/team\n";
        test_host.write_file(".git/config", including);
        let conditional = "[http]\n\textraheader = SECRET\n[a]\n\tb = c\n[includeIf \
            \"gitdir:x\"]\n\tpath = more\n";
        test_host.write_file("shared/team", conditional);
        let of_cargo = "include = \"more.toml\"\n[registries.r]\ntoken = \"SECRET\"\n";
        test_host.write_file(".cargo/config.toml", of_cargo);
    }
    reads.write_file("config", "SECRET of nobody");
    reads.write_file("plain/.npmrc", "fund=false\r\n");
    symlink(".npmrc", reads.workspace_dir().join("harmless")).expect("a link");
    let harmless = [("harmless", "", "fund=false")];
    for (path, _, clean) in SETTINGS.iter().chain(INCLUDED).chain(&harmless) {
        let text = reads.call_ok("open_path", &serde_json::json!({ "path": path }).to_string());
        assert!(text.starts_with("read ") && !text.contains("SECRET"), "{path}: {text}");
        assert_contains(&text, clean);
        assert_contains(
            &text,
            "contains credentials, which are removed from the text that tools \
            read",
        );
    }
    let text = reads.call_ok("open_path", r#"{"path":"config"}"#);
    assert_eq!(text, "read SECRET of nobody", "it is not a settings file");
    // The next call notices a new include.
    reads.write_file("later", "[http]\n\textraheader = SECRET\n");
    reads.write_file(".git/config", "[include]\n\tpath = ../later\n");
    let text = reads.call_ok("open_path", r#"{"path":"later"}"#);
    assert!(text.starts_with("read ") && !text.contains("SECRET"), "{text}");
    let text = reads.call_ok("open_path", r#"{"path":"plain/.npmrc"}"#);
    assert_eq!(text, "read fund=false\r\n", "it is as it was written");
    let text = walks.call_ok("walk_files", r#"{"root":""}"#);
    assert!(text.contains("x=y") && !text.contains("SECRET"), "{text}");
    std::fs::write(reads.workspace_dir().join("pip.conf"), [b'\xff', b'=', b'S']).expect("written");
    let text = reads.call_ok("open_path", r#"{"path":"pip.conf"}"#);
    assert!(text.starts_with("error 0\n"), "{text}");
    assert_contains(&text, "it may contain credentials");
}

#[test]
fn tools_do_not_change_settings_with_secrets_that_they_do_not_see() {
    let steps = r#"
        (call $overwrite @"pip.conf" @"new")
        (call $append @"pip.conf" @"new")
        (call $delete @"pip.conf")
        (call $rename @"pip.conf" @"seen")
        (call $rename @"other" @"pip.conf")
        (call $rename @"dir" @"dir2")
    "#;
    let test_host = edit_host(steps);
    let secret = "password = SECRET\n";
    test_host.write_file("pip.conf", secret);
    test_host.write_file("dir/pip.conf", secret);
    test_host.write_file("other", "x");
    let text = test_host.call_ok("edit", "{}");
    assert_eq!(text.lines().filter(|line| line.contains(" error ")).count(), 6, "{text}");
    assert_contains(&text, "`pip.conf` contains credentials that are hidden from tools");
    assert_contains(&text, "`dir/pip.conf` contains credentials that are hidden from tools");
    assert!(!text.contains("SECRET"), "{text}");
    for path in ["pip.conf", "dir/pip.conf"] {
        let now =
            std::fs::read_to_string(test_host.workspace_dir().join(path)).expect("it is there");
        assert_eq!(now, secret);
    }
    let test_host = edit_host(r#"(call $overwrite @"auth.json" @"new")"#);
    test_host.write_file("auth.json", "{}\n");
    test_host.call_ok("edit", "{}");
    let now = std::fs::read_to_string(test_host.workspace_dir().join("auth.json"));
    assert_eq!(now.expect("it is there"), "new");
}
