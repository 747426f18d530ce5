//! The permissions of a tool. [`Grants`] lists every permission that a tool can have.

use serde::{Deserialize, Serialize};

use super::Capability;

/// All permissions of one tool in one call. The default is no permission.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grants {
    /// Access to the files of the workspace.
    pub files: FileGrant,
    /// Whether the tool may propose commands. The policy decides about each command line.
    pub commands: bool,
    /// Patterns of the HTTP requests that the tool may send; see
    /// [`RequestPattern`](super::RequestPattern). The policy decides about each request.
    pub fetch: Vec<String>,
    /// Whether the tool may present plans. The user decides about each plan, and an accepted plan
    /// ends plan mode.
    pub plans: bool,
    /// Whether the tool can read the state that it stored in an earlier call.
    pub state: bool,
    /// Whether the tool may delegate tasks to sub-agents. Sub-agents are read-only.
    pub agents: bool,
}

/// The access of a tool to the files of the workspace.
///
/// This enum is closed: code that matches it has to treat each kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileGrant {
    /// The tool sees no files.
    #[default]
    None,
    /// The tool can open files for reading.
    Read,
    /// The tool can also create, change and delete files.
    ReadWrite,
}

impl Grants {
    /// Returns the permissions for the capabilities in `requested`, and never more than these.
    pub fn from_requested(requested: &[Capability]) -> Self {
        let mut grants = Self::default();
        for capability in requested {
            match capability {
                Capability::ReadFiles => grants.files = grants.files.max(FileGrant::Read),
                Capability::WriteFiles => grants.files = FileGrant::ReadWrite,
                Capability::RunCommands => grants.commands = true,
                Capability::Fetch(hosts) => grants.fetch.extend(hosts.iter().cloned()),
                Capability::PresentPlan => grants.plans = true,
                Capability::KeepState => grants.state = true,
                Capability::Delegate => grants.agents = true,
            }
        }
        grants
    }

    /// Returns whether no permission is granted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a tool with these permissions can change anything except its own state.
    /// Presenting plans counts, because an accepted plan changes the mode.
    pub fn has_side_effects(&self) -> bool {
        let Self { files, commands, fetch, plans, state: _, agents: _ } = self;
        *commands || *plans || *files == FileGrant::ReadWrite || !fetch.is_empty()
    }

    /// Describes the permissions, one phrase for each.
    pub fn describe(&self) -> Vec<String> {
        let Self { files, commands, fetch, plans, state, agents } = self;
        let mut words = Vec::new();
        match files {
            FileGrant::None => {}
            FileGrant::Read => words.push("read files of the workspace".to_owned()),
            FileGrant::ReadWrite => words.push("read and write files of the workspace".to_owned()),
        }
        if *commands {
            words.push("run commands, subject to the policy".to_owned());
        }
        if !fetch.is_empty() {
            words
                .push(format!("send HTTP requests to {}, subject to the policy", fetch.join(", ")));
        }
        if *plans {
            words.push("present plans for approval".to_owned());
        }
        if *agents {
            words.push("delegate tasks to read-only sub-agents".to_owned());
        }
        if *state {
            words.push("keep state for the session".to_owned());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_requests_nothing_is_granted() {
        assert_eq!(Grants::from_requested(&[]), Grants::default());
    }

    #[test]
    fn r014_permissions_are_exactly_those_requested() {
        let grants = Grants::from_requested(&[Capability::ReadFiles]);
        assert_eq!(grants, Grants { files: FileGrant::Read, ..Grants::default() });
        assert!(!grants.has_side_effects());
        let grants = Grants::from_requested(&[Capability::WriteFiles, Capability::ReadFiles]);
        assert_eq!(grants.files, FileGrant::ReadWrite);
        assert!(grants.has_side_effects());
        let grants = Grants::from_requested(&[Capability::KeepState, Capability::Delegate]);
        assert_eq!(grants, Grants { state: true, agents: true, ..Grants::default() });
        assert!(!grants.has_side_effects());
        let grants = Grants::from_requested(&[
            Capability::Fetch(vec!["a.example".into()]),
            Capability::Fetch(vec!["b.example".into()]),
        ]);
        assert_eq!(grants.fetch, ["a.example", "b.example"]);
        assert!(grants.has_side_effects(), "nobody here knows what a request changes there");
        let grants = Grants::from_requested(&[Capability::PresentPlan]);
        assert!(grants.has_side_effects(), "it can end plan mode");
    }

    #[test]
    fn each_permission_has_one_phrase() {
        let nothing = Grants::default();
        assert!(nothing.is_empty());
        assert_eq!(nothing.describe(), [""; 0]);
        let fetch = vec!["docs.rs".to_owned(), "GET *.example.com".to_owned()];
        let table = [
            (Grants { files: FileGrant::Read, ..nothing.clone() }, "read files of the workspace"),
            (
                Grants { files: FileGrant::ReadWrite, ..nothing.clone() },
                "read and write files of the workspace",
            ),
            (Grants { commands: true, ..nothing.clone() }, "run commands, subject to the policy"),
            (
                Grants { fetch, ..nothing.clone() },
                "send HTTP requests to docs.rs, GET *.example.com, subject to the policy",
            ),
            (Grants { plans: true, ..nothing.clone() }, "present plans for approval"),
            (Grants { agents: true, ..nothing.clone() }, "delegate tasks to read-only sub-agents"),
            (Grants { state: true, ..nothing }, "keep state for the session"),
        ];
        for (grants, phrase) in table {
            assert!(!grants.is_empty(), "{phrase}");
            assert_eq!(grants.describe(), [phrase]);
        }
    }
}
