//! The git settings that name a file which git runs or reads.

/// The way in which the value of a setting names files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingValueKind {
    /// The path of a directory whose contents git runs.
    Directory,
    /// The path of a single file.
    File,
    /// A shell command line in which some words are paths.
    CommandLine,
    /// A shell command line after `!`, otherwise arguments of git.
    Alias,
    /// The address of a repository, which names a program in the form `ext::COMMAND`.
    Address,
}

/// A group of settings of the same kind, listed for the same reason.
struct NamingSetting {
    section: &'static str,
    /// The keys in lowercase. An empty list stands for all keys of the section.
    keys: &'static [&'static str],
    kind: SettingValueKind,
    #[cfg_attr(not(test), expect(dead_code, reason = "it says why the entry is here"))]
    reason: &'static str,
}

const fn setting(
    section: &'static str,
    keys: &'static [&'static str],
    kind: SettingValueKind,
    reason: &'static str,
) -> NamingSetting {
    NamingSetting { section, keys, kind, reason }
}

use SettingValueKind::{Address, Alias, CommandLine, Directory, File};

/// All settings that name files, by section. A subsection (`filter "x"`) makes no difference.
const SETTINGS: &[NamingSetting] = &[
    setting("alias", &[], Alias, "git runs it instead of a subcommand"),
    setting("browser", &["cmd", "path"], CommandLine, "git runs it to open web pages"),
    setting("core", &["hookspath"], Directory, "git runs the hooks in it"),
    setting(
        "core",
        &["attributesfile"],
        File,
        "git runs the filter, merge and diff programs selected in it",
    ),
    setting(
        "core",
        &["fsmonitor"],
        CommandLine,
        "git runs it whenever it reads the state of the worktree",
    ),
    setting(
        "core",
        &["alternaterefscommand"],
        CommandLine,
        "git runs it during a fetch, or when it receives a push",
    ),
    setting("core", &["askpass"], CommandLine, "git runs it to ask for a password"),
    setting("core", &["editor"], CommandLine, "git runs it to edit a message"),
    setting("core", &["gitproxy"], CommandLine, "git runs it to connect to a server"),
    setting("core", &["pager"], CommandLine, "git runs it to show its output"),
    setting("core", &["sshcommand"], CommandLine, "git runs it to connect to a server"),
    setting("credential", &["helper"], CommandLine, "git runs it to ask for a password"),
    setting(
        "diff",
        &["command", "external", "textconv"],
        CommandLine,
        "git runs it to compare files",
    ),
    setting("difftool", &["cmd", "path"], CommandLine, "`git difftool` runs it"),
    setting(
        "filter",
        &["clean", "process", "smudge"],
        CommandLine,
        "git runs it when it reads and writes files of the worktree",
    ),
    setting("gc", &["recentobjectshook"], CommandLine, "git runs it when it removes old objects"),
    setting(
        "gpg",
        &["defaultkeycommand", "program"],
        CommandLine,
        "git runs it to sign and verify commits",
    ),
    setting("guitool", &["cmd"], CommandLine, "`git gui` runs it"),
    setting("hook", &["command"], CommandLine, "git runs it on commits, checkouts and merges"),
    setting("imap", &["tunnel"], CommandLine, "`git imap-send` runs it"),
    setting(
        "init",
        &["templatedir"],
        Directory,
        "git copies hooks and configuration from it into new repositories",
    ),
    setting("instaweb", &["browser", "httpd", "modulepath"], CommandLine, "`git instaweb` runs it"),
    setting("interactive", &["difffilter"], CommandLine, "`git add --patch` runs it"),
    setting(
        "lfs",
        &["clean", "path", "smudge"],
        CommandLine,
        "Git LFS runs it as an extension or to transfer files",
    ),
    setting("man", &["cmd", "path"], CommandLine, "`git help` runs it"),
    setting("merge", &["driver"], CommandLine, "git runs it to merge files"),
    setting("mergetool", &["cmd", "path"], CommandLine, "`git mergetool` runs it"),
    setting("pager", &[], CommandLine, "git runs it to show the output of a subcommand"),
    setting(
        "remote",
        &["pushurl", "url"],
        Address,
        "git runs the program in a repository URL of the form `ext::COMMAND`",
    ),
    setting(
        "remote",
        &["receivepack", "uploadpack", "vcs"],
        CommandLine,
        "git runs it when it fetches or pushes",
    ),
    setting(
        "sendemail",
        &["cccmd", "headercmd", "sendmailcmd", "smtpserver", "tocmd"],
        CommandLine,
        "`git send-email` runs it to send or address a message",
    ),
    setting("sequence", &["editor"], CommandLine, "git runs it to edit the plan of a rebase"),
    setting("submodule", &["update"], CommandLine, "git runs it when it updates the submodule"),
    setting(
        "svn",
        &["authors-prog"],
        CommandLine,
        "`git svn` runs it to find the names of authors",
    ),
    setting("tar", &["command"], CommandLine, "`git archive` runs it to compress an archive"),
    setting(
        "trailer",
        &["cmd", "command"],
        CommandLine,
        "git runs it for the trailer of a message",
    ),
    setting("uploadpack", &["packobjectshook"], CommandLine, "git runs it when it serves a fetch"),
    setting("web", &["browser"], CommandLine, "git runs it to open web pages"),
];

/// Returns how the value of a setting names files, if it does. `section` and `key` are in
/// lowercase.
pub(super) fn kind_of(section: &str, key: &str) -> Option<SettingValueKind> {
    let found = SETTINGS.iter().find(|known| {
        known.section == section && (known.keys.is_empty() || known.keys.contains(&key))
    });
    found.map(|known| known.kind)
}

/// The names of the hooks that git runs, for directories that hold other files too.
pub(super) const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_found_and_has_a_reason() {
        for known in SETTINGS {
            let keys = if known.keys.is_empty() { &["any"][..] } else { known.keys };
            for key in keys {
                assert_eq!(
                    kind_of(known.section, key),
                    Some(known.kind),
                    "{}.{key}",
                    known.section
                );
            }
            assert!(!known.reason.is_empty() && !known.reason.ends_with('.'), "{}", known.reason);
            assert_eq!(known.section, known.section.to_ascii_lowercase());
        }
        assert_eq!((kind_of("core", "bare"), kind_of("user", "name")), (None, None));
    }
}
