//! Which commands get a workspace that they cannot change.
//!
//! Such a command needs no private view and no check of its changes, so it starts faster, reads
//! faster, and runs beside others. A wrong guess is safe: the sandbox makes the workspace
//! read-only, the command fails, and its result names the rule.

mod readers;
mod shell_words;

use std::fmt;

use super::{Action, PatternMatch, Policy, RuleReference, ToolId, TrustLevel, Verdict};

/// The access of a command to the workspace.
///
/// This enum is closed: code that starts commands has to treat each access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceAccess {
    /// The command may change the workspace.
    #[default]
    ReadWrite,
    /// The command cannot change the workspace.
    ReadOnly(ReadOnlyReason),
}

/// Why a command cannot change the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadOnlyReason {
    /// A rule with `writes = false` covers the command.
    Rule(RuleReference),
    /// The command consists of programs on the built-in list of programs that only read.
    BuiltInList,
    /// The server that the command starts has no permission to change the workspace.
    NoPermission,
}

impl fmt::Display for ReadOnlyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => {
                write!(f, "the rule `{}` at {} has `writes = false`", rule.text, rule.place)
            }
            Self::NoPermission => {
                f.write_str("the server has no permission to write files of the workspace")
            }
            Self::BuiltInList => f.write_str(
                "its programs are on the built-in list of programs that only read; to let it \
                    write, add `{ pattern = \"…\", writes = true }` to `allow` under [commands]",
            ),
        }
    }
}

impl Policy {
    /// Returns the access of a command of a tool to the workspace.
    ///
    /// A rule with `writes = false` of any layer makes it read-only. Otherwise a rule with
    /// `writes = true`, unless it belongs to an untrusted project, lets it write. Otherwise the
    /// built-in list of programs that only read decides.
    ///
    /// ```
    /// use cofferdam_policy::{Policy, ToolId, WorkspaceAccess};
    ///
    /// let access = |line| Policy::default().workspace_access(ToolId::new("bash", ""), line);
    /// assert!(matches!(access("git log --oneline | head"), WorkspaceAccess::ReadOnly(_)));
    /// assert_eq!(access("git commit -m x"), WorkspaceAccess::ReadWrite);
    /// ```
    pub fn workspace_access(&self, tool: ToolId<'_>, line: &str) -> WorkspaceAccess {
        let action = Action::Command(line);
        let mut may_write = false;
        for (trust, rule) in self.rules() {
            let (Some(writes), Verdict::Allow) = (rule.writes, rule.source_rule.verdict) else {
                continue;
            };
            if rule.matches(tool, &action) != PatternMatch::Yes {
                continue;
            }
            if !writes {
                return WorkspaceAccess::ReadOnly(ReadOnlyReason::Rule(rule.source_rule.clone()));
            }
            may_write |= trust != TrustLevel::Stranger;
        }
        if !may_write && readers::only_reads(line) {
            return WorkspaceAccess::ReadOnly(ReadOnlyReason::BuiltInList);
        }
        WorkspaceAccess::ReadWrite
    }
}

#[cfg(test)]
mod tests;
