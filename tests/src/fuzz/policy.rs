//! Reading policies, and deciding by them.

use cofferdam::policy::{Deed, HostAddress, Layer, Level, Mode, Policy, SimpleCommand, ToolId, Verdict, WorkspacePath};

use super::fields;

/// The fields: the policy files of the system, the user and the project, a tool, a command line, a path, a host and a
/// method.
///
/// - A file is understood, or the error stands at a place in it.
/// - The file of a project that nobody trusts makes no verdict milder, shows no path and allows no mode.
/// - The order of the files means nothing.
/// - What is asked once for a simple command covers that command.
pub fn policy(data: &[u8]) {
    let Some([system, user, project, tool, line, path, host, method]) = fields(data) else { return };
    let layer = |level: Level, text: &str| match Layer::parse(level, "policy.toml", text) {
        Ok(layer) => Some(layer),
        Err(error) => {
            assert!((1..=text.matches('\n').count() + 1).contains(&error.place.line), "{error} is not in the file");
            None
        }
    };
    let [system, user, project] =
        [(Level::System, system), (Level::User, user), (Level::Project, project)].map(|(level, text)| layer(level, text));
    let mut without = Policy::default();
    system.iter().chain(&user).cloned().for_each(|layer| without.add(layer));
    let mut with = without.clone();
    project.iter().cloned().for_each(|layer| with.add(layer));
    let mut backwards = Policy::default();
    project.iter().chain(&user).chain(&system).cloned().for_each(|layer| backwards.add(layer));

    let path = WorkspacePath::parse(path, None).ok();
    let host: Option<HostAddress> = HostAddress::parse(host).ok();
    let mut deeds = vec![Deed::Command(line), Deed::Write(None), Deed::Use];
    deeds.extend(path.iter().flat_map(|path| [Deed::Read(path), Deed::Write(Some(path))]));
    deeds.extend(host.iter().map(|host| Deed::Fetch { host, method }));
    for mode in Mode::ALL {
        assert!(without.forbids(mode).is_none() || with.forbids(mode).is_some(), "a project allows the mode {mode}");
        for deed in &deeds {
            let verdict = |policy: &Policy| -> Verdict { policy.find(mode, ToolId::new(tool, ""), deed).verdict };
            assert!(verdict(&with) >= verdict(&without), "a project loosens `{deed}` in the mode {mode}");
            assert_eq!(verdict(&with), verdict(&backwards), "the order of files decides on `{deed}` in the mode {mode}");
        }
    }
    assert_eq!(with.canonical(), backwards.canonical(), "the order of files is in the canonical form");
    if let Some(path) = &path {
        assert!(with.protected().of(path) >= without.protected().of(path), "a project shows {path}");
        assert_eq!(with.protected().of(path), backwards.protected().of(path), "the order of files decides on {path}");
    }
    if let Some(command) = SimpleCommand::parse(line) {
        assert!(command.scope().covers(line), "the scope of `{line}` does not cover it");
    }
}
