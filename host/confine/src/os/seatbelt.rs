//! The profile of the macOS sandbox for a command. It denies everything that is not listed.
//!
//! The last matching rule decides, so protected paths come after the directories around them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cofferdam_policy::{PathProtection, ProtectedPaths};

/// The inputs of a profile.
#[derive(Debug)]
pub(super) struct SeatbeltProfile<'a> {
    pub(super) workspace: &'a Path,
    /// Whether the command can change the workspace.
    pub(super) writes_workspace: bool,
    pub(super) temporary: &'a Path,
    pub(super) program: &'a Path,
    pub(super) read: &'a [PathBuf],
    pub(super) write: &'a [PathBuf],
    pub(super) network: bool,
    /// The protected paths that exist below the workspace.
    pub(super) protected: &'a [(PathBuf, PathProtection)],
    /// The rules for paths that do not exist yet.
    pub(super) rules: &'a ProtectedPaths,
}

impl SeatbeltProfile<'_> {
    /// Returns the text of the profile, or `None` if a path is not UTF-8.
    pub(super) fn text(&self) -> Option<String> {
        let mut text = String::from(
            "(version 1)\n(deny default)\n(import \"system.sb\")\n(allow process-fork)\n(allow \
                process-exec)\n\
             (allow signal (target same-sandbox))\n(allow sysctl-read)\n(allow \
             file-read-metadata)\n",
        );
        for path in self.read.iter().map(PathBuf::as_path).chain([self.program]) {
            let _ = writeln!(text, "(allow file-read* (subpath {}))", quote_path(path)?);
        }
        let mut write: Vec<&Path> = self.write.iter().map(PathBuf::as_path).collect();
        if self.writes_workspace {
            write.push(self.workspace);
        } else {
            let path = quote_path(self.workspace)?;
            let _ = writeln!(text, "(allow file-read* (subpath {path}))");
        }
        write.push(self.temporary);
        for path in write {
            let _ =
                writeln!(text, "(allow file-read* file-write* (subpath {}))", quote_path(path)?);
        }
        for device in ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"] {
            let _ = writeln!(
                text,
                "(allow file-read* file-write-data (literal {}))",
                quote_path(Path::new(device))?
            );
        }
        if self.network {
            text.push_str(
                "(allow network-outbound)\n(allow network-inbound)\n(allow system-socket)\n",
            );
        }
        for rule in self.rules.read_only_regexes() {
            let _ =
                writeln!(text, "(deny file-write* (regex {}))", path_regex(self.workspace, &rule)?);
        }
        for (path, how) in self.protected {
            let path = quote_path(&self.workspace.join(path))?;
            let _ = match how {
                PathProtection::Hidden => {
                    writeln!(text, "(deny file-read* file-write* (subpath {path}))")
                }
                PathProtection::ReadOnly => writeln!(text, "(deny file-write* (subpath {path}))"),
                PathProtection::Pinned => {
                    writeln!(text, "(deny file-write-unlink (literal {path}))")
                }
            };
        }
        Some(text)
    }
}

fn quote_path(path: &Path) -> Option<String> {
    let text = path.to_str().filter(|text| !text.contains(char::is_control))?;
    Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Returns a regular expression for a literal beginning, the given ending, and all paths below.
fn path_regex(beginning: &Path, end: &str) -> Option<String> {
    let text = beginning
        .to_str()
        .filter(|text| !text.contains(char::is_control) && !text.contains('"'))?;
    let literal: String = text
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "/_-".contains(c) { c.to_string() } else { format!("[{c}]") }
        })
        .collect();
    let literal = literal.replace("[^]", "\\^").replace("[\\]", "\\\\");
    Some(format!("#\"^{literal}/{end}(/|$)\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_denies_by_default_and_protects_last() {
        let profile = SeatbeltProfile {
            workspace: Path::new("/Users/u/my \"project\".d"),
            writes_workspace: true,
            temporary: Path::new("/private/tmp/t"),
            program: Path::new("/usr/local/bin/cofferdam"),
            read: &["/usr".into()],
            write: &[],
            network: false,
            rules: &ProtectedPaths::default(),
            protected: &[
                (".git".into(), PathProtection::Pinned),
                (".git/config".into(), PathProtection::ReadOnly),
                (".env".into(), PathProtection::Hidden),
            ],
        };
        assert_eq!(
            profile.text(),
            None,
            "a quotation mark in a regular expression is not worth the risk"
        );
        let text = SeatbeltProfile { workspace: Path::new("/Users/u/project.d"), ..profile }
            .text()
            .expect("it has a text");
        let (rules, rest): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.contains("(regex "));
        assert_eq!(rules.len(), ProtectedPaths::default().read_only_regexes().len());
        let hooks = concat!(
            r##"(deny file-write* (regex #"^/Users/u/project[.]d/(.*/)?"##,
            r##"[.][gG][iI][tT]/[hH][oO][oO][kK][sS](/|$)"))"##,
        );
        assert!(rules.contains(&hooks), "{rules:#?}");
        insta::assert_snapshot!(rest.join("\n"), @r##"
        (version 1)
        (deny default)
        (import "system.sb")
        (allow process-fork)
        (allow process-exec)
        (allow signal (target same-sandbox))
        (allow sysctl-read)
        (allow file-read-metadata)
        (allow file-read* (subpath "/usr"))
        (allow file-read* (subpath "/usr/local/bin/cofferdam"))
        (allow file-read* file-write* (subpath "/Users/u/project.d"))
        (allow file-read* file-write* (subpath "/private/tmp/t"))
        (allow file-read* file-write-data (literal "/dev/null"))
        (allow file-read* file-write-data (literal "/dev/zero"))
        (allow file-read* file-write-data (literal "/dev/random"))
        (allow file-read* file-write-data (literal "/dev/urandom"))
        (deny file-write-unlink (literal "/Users/u/project.d/.git"))
        (deny file-write* (subpath "/Users/u/project.d/.git/config"))
        (deny file-read* file-write* (subpath "/Users/u/project.d/.env"))
        "##);
    }
}
