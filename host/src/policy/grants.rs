//! What a tool is given. This struct is the list of all authority that a tool can have.

use serde::{Deserialize, Serialize};

use super::Capability;

/// Everything that one tool may touch in one call. The default is nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grants {
    /// The files of the workspace.
    pub files: FileGrant,
    /// Whether it may propose commands. Each command line is decided by itself.
    pub commands: bool,
    /// The requests it may send, as [patterns](super::RequestPattern). Each request is decided by
    /// itself.
    pub fetch: Vec<String>,
    /// Whether it may show plans. Each plan is decided by itself, and one that is accepted ends
    /// plan mode.
    pub plans: bool,
    /// Whether it finds again what it kept at an earlier call.
    pub state: bool,
    /// Whether it may hand tasks to sub-agents, which can only read.
    pub agents: bool,
}

/// What a tool may do with the files of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileGrant {
    /// It sees no file at all.
    #[default]
    None,
    /// It can open files for reading.
    Read,
    /// It can create, change and delete files too.
    ReadWrite,
}

impl Grants {
    /// What a tool that asks for `asked` is given: never more than it asks for. The capabilities
    /// that this host cannot lend yet are returned as the second part, so that nobody takes silence
    /// for consent.
    pub fn from_requested(asked: &[Capability]) -> (Self, Vec<Capability>) {
        let mut grants = Self::default();
        let mut not_lent = Vec::new();
        for capability in asked {
            match capability {
                Capability::ReadFiles => grants.files = grants.files.max(FileGrant::Read),
                Capability::WriteFiles => grants.files = FileGrant::ReadWrite,
                Capability::RunCommands => grants.commands = true,
                Capability::Fetch(hosts) => grants.fetch.extend(hosts.iter().cloned()),
                Capability::PresentPlan => grants.plans = true,
                Capability::KeepState => grants.state = true,
                Capability::Delegate => grants.agents = true,
                Capability::ReadEnvironment(_) => not_lent.push(capability.clone()),
            }
        }
        (grants, not_lent)
    }

    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a tool with these grants can change anything outside of itself. A plan that is
    /// accepted changes the mode; what a tool keeps is its own.
    pub fn has_side_effects(&self) -> bool {
        let Self { files, commands, fetch, plans, state: _, agents: _ } = self;
        *commands || *plans || *files == FileGrant::ReadWrite || !fetch.is_empty()
    }

    /// The grants in words.
    pub fn describe(&self) -> Vec<String> {
        let Self { files, commands, fetch, plans, state, agents } = self;
        let mut words = Vec::new();
        match files {
            FileGrant::None => {}
            FileGrant::Read => words.push("read files of the workspace".to_owned()),
            FileGrant::ReadWrite => words.push("read and write files of the workspace".to_owned()),
        }
        if *commands {
            words.push("propose commands, each decided by itself".to_owned());
        }
        if !fetch.is_empty() {
            words.push(format!("send requests to {}, each decided by itself", fetch.join(", ")));
        }
        if *plans {
            words.push("present plans, each decided by itself".to_owned());
        }
        if *agents {
            words.push("hand tasks to sub-agents that can only read".to_owned());
        }
        if *state {
            words.push("keep notes for the session".to_owned());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asked_is_nothing_given() {
        assert_eq!(Grants::from_requested(&[]), (Grants::default(), vec![]));
    }

    #[test]
    fn r014_grants_follow_what_is_asked_and_no_more() {
        let (grants, _) = Grants::from_requested(&[Capability::ReadFiles]);
        assert_eq!(grants, Grants { files: FileGrant::Read, ..Grants::default() });
        assert!(!grants.has_side_effects());
        let (grants, _) = Grants::from_requested(&[Capability::WriteFiles, Capability::ReadFiles]);
        assert_eq!(grants.files, FileGrant::ReadWrite);
        assert!(grants.has_side_effects());
        let (grants, _) = Grants::from_requested(&[Capability::KeepState, Capability::Delegate]);
        assert_eq!(grants, Grants { state: true, agents: true, ..Grants::default() });
        assert!(!grants.has_side_effects());
        let (grants, _) = Grants::from_requested(&[
            Capability::Fetch(vec!["a.example".into()]),
            Capability::Fetch(vec!["b.example".into()]),
        ]);
        assert_eq!(grants.fetch, ["a.example", "b.example"]);
        assert!(grants.has_side_effects(), "nobody here knows what a request changes there");
        let (grants, _) = Grants::from_requested(&[Capability::PresentPlan]);
        assert!(grants.has_side_effects(), "it can end plan mode");
    }

    #[test]
    fn what_cannot_be_lent_is_named() {
        let environment = Capability::ReadEnvironment(vec!["PATH".into()]);
        let (grants, not_lent) =
            Grants::from_requested(&[environment.clone(), Capability::RunCommands]);
        assert!(grants.commands);
        assert_eq!(not_lent, [environment]);
    }
}
