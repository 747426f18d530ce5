//! A filter that parses git settings like git and writes them without their secrets.

use std::fmt::Write as _;

use super::secrets::{
    is_secret_command, is_secret_name, is_secret_value, without_passwords, without_proxy_user,
};
use crate::git::{GitSetting, parse_settings};

/// Sections that contain only credentials.
const SECRET_SECTIONS: &[&str] = &["sendemail", "imap"];
/// Keys of `[credential]` that name a program and not a secret, unless the value is a command line
/// of its own.
const CREDENTIAL_KEYS: &[&str] =
    &["helper", "usehttppath", "provider", "interactive", "guiprompt", "namespace"];
/// Sections with names of branches, commits and repositories. Values that look like tokens there
/// are not secrets.
const PLAIN_SECTIONS: &[&str] = &[
    "core",
    "branch",
    "remote",
    "submodule",
    "extensions",
    "gc",
    "rerere",
    "pack",
    "index",
    "init",
    "merge",
];
/// Keys whose value a shell runs.
const COMMAND_KEYS: &[&str] = &[
    "clean",
    "smudge",
    "process",
    "textconv",
    "driver",
    "cmd",
    "command",
    "sshcommand",
    "askpass",
    "editor",
    "helper",
    "gitproxy",
    "fsmonitor",
    "external",
    "program",
    "uploadpack",
    "receivepack",
    "pager",
    "packobjectshook",
    "alternaterefscommand",
];

/// Removes secrets and comments, and returns whether the settings differ.
///
/// `included` maps the path of each included file. Text that git rejects becomes empty.
pub(super) fn without_secrets(
    text: &str,
    included: impl Fn(&str) -> Option<String>,
) -> (String, bool) {
    let Some(settings) = parse_settings(text) else { return (String::new(), true) };
    let mut clean = String::new();
    let mut has_changed = without_passwords(text) != text
        || text.lines().any(|line| is_comment(line) && is_secret_value(line));
    let mut current = (String::new(), None);
    for mut setting in settings {
        let is_include = setting.section.starts_with("include") && setting.key == "path";
        if is_include {
            let path = setting.value.as_deref().and_then(&included);
            has_changed |= path != setting.value;
            setting.value = path;
        }
        if is_secret(&setting) || is_include && setting.value.is_none() {
            has_changed = true;
            continue;
        }
        if setting.key == "proxy" {
            let clean = setting.value.as_deref().map(without_proxy_user);
            has_changed |= clean != setting.value;
            setting.value = clean;
        }
        for part in [&mut setting.subsection, &mut setting.value].into_iter().flatten() {
            *part = without_passwords(part);
        }
        let section = (setting.section, setting.subsection);
        if section != current {
            let _ = match &section.1 {
                Some(name) => writeln!(
                    clean,
                    "[{} \"{}\"]",
                    section.0,
                    name.replace('\\', "\\\\").replace('"', "\\\"")
                ),
                None => writeln!(clean, "[{}]", section.0),
            };
            current = section;
        }
        let _ = match setting.value {
            Some(value) => writeln!(clean, "\t{} = \"{}\"", setting.key, escape_value(&value)),
            None => writeln!(clean, "\t{}", setting.key),
        };
    }
    (clean, has_changed)
}

/// Returns the paths of the included files, as written.
pub(super) fn included(text: &str) -> Vec<String> {
    let settings = parse_settings(text).unwrap_or_default();
    settings
        .into_iter()
        .filter(|setting| setting.section.starts_with("include") && setting.key == "path")
        .filter_map(|it| it.value)
        .collect()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['#', ';']) || line.contains(" #") || line.contains(" ;")
}

fn is_secret(setting: &GitSetting) -> bool {
    let value = setting.value.as_deref().unwrap_or_default();
    // `ext::` runs the rest of the value as a command.
    let runs = value.starts_with('!')
        || value.starts_with("ext::")
        || COMMAND_KEYS.contains(&setting.key.as_str())
        || matches!(setting.section.as_str(), "alias" | "filter" | "pager");
    SECRET_SECTIONS.contains(&setting.section.as_str())
        || setting.section == "credential"
            && (value.starts_with('!') || !CREDENTIAL_KEYS.contains(&setting.key.as_str()))
        || is_secret_name(&setting.key) && !matches!(value, "true" | "false" | "")
        || runs && is_secret_command(value)
        || !PLAIN_SECTIONS.contains(&setting.section.as_str())
            && is_secret_value(&without_passwords(value))
}

fn escape_value(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\t', "\\t")
        .replace('\u{8}', "\\b")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = r#"# old: https://u:SECRET1@host/
[user]
	name = A "B" \"C\"
	email=a@example.org ; mine
[http]
	extraheader = AUTHORIZATION: basic SECRET2
	sslVerify = true
	proxy = http://u:SECRET3@proxy:8080
[http "https://host/"]
	extraHeader = "X-Token: SECRET4"
[url "https://u:SECRET5@host/"]
	insteadOf = https://host/
	pushInsteadOf = git@host:
[credential] helper = "!f() { echo password=SECRET6; }; f"
[credential "https://host"]
	username = SECRET7
[remote "origin"]
	url = https://oauth2:SECRET8@host/a.git
	fetch = +refs/heads/*:refs/remotes/origin/*
	pushurl = ssh://git:SECRET9@host/a.git
[github]
	oauth-token = SECRET10
[alias]
	st = status
	up = !curl -H 'Authorization: SECRET11' host
[filter "crypt"]
	smudge = openssl enc -d -k SECRET12
[tool]
	some = ghp_SECRET13abcdefghijklmn
[include]
	path = ~/SECRET14
	path = ~/ours
[core]
	bare
	pager = less \
-R
	sshCommand = sshpass -p SECRET15 ssh
	gitProxy = env PROXY_PASSWORD=SECRET16 connect
[remote "proxied"]
	proxy = u:SECRET17@proxy:3128
	url = ext::sh -c 'SECRET=SECRET18 connect %S'
	vcs = plain
[branch "fix/a1b2c3d4e5f60718a1b2c3d4e5f60718"]
	merge = refs/heads/fix/a1b2c3d4e5f60718a1b2c3d4e5f60718
"#;

    #[test]
    fn secrets_are_taken_out_and_the_rest_is_what_it_was() {
        let (clean, has_changed) =
            without_secrets(SETTINGS, |path| (path == "~/ours").then(|| path.to_owned()));
        assert!(has_changed && !clean.contains("SECRET"), "{clean}");
        insta::assert_snapshot!(clean);
        let (again, has_changed) = without_secrets(&clean, |path| Some(path.to_owned()));
        assert_eq!((again.as_str(), has_changed), (clean.as_str(), false));
    }

    #[test]
    fn git_reads_the_same_in_both() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = |text: &str| {
            let path = folder.path().join("settings");
            std::fs::write(&path, text).expect("it is written");
            let output = std::process::Command::new("git")
                .args(["config", "--list", "-z", "--file"])
                .arg(path)
                .output()
                .expect("git starts");
            assert!(output.status.success(), "{text}: {output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        for text in [
            "[a]b=c",
            "[a \"B\\\"\\\\c\"] d = e f  # g\n",
            "[a.B]\nc\n d = \"e ; f\" g \\\n h\n",
            "\u{feff}[core]\r\n\tx = \" y \"\r\n",
            "[a]\nb = \\t\\\"\\\\\n[a]\nb = \"\"\nb =\n",
            "; only\n[empty]\n[x]\ny=1",
        ] {
            let (clean, has_changed) = without_secrets(text, |path| Some(path.to_owned()));
            assert_eq!(list(&clean), list(text), "{clean}");
            assert!(!has_changed, "{text}");
        }
        for broken in ["[a", "a = b", "[a]\nb = \"c\n", "[a]\n= c", "[a]\nb = \\q"] {
            assert_eq!(without_secrets(broken, |_| None), (String::new(), true), "{broken}");
        }
    }
}
