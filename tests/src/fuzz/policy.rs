//! Reading policies, and deciding by them.

use cofferdam::policy::{
    Action, ApprovalMode, HostAddress, Policy, PolicyLayer, PolicyLevel, SimpleCommand, ToolId,
    Verdict, WorkspacePath,
};

use super::fields;

/// The fields: the policy files of the system, the user and the project, a tool, a command line, a
/// path, a host and a method.
///
/// - A file is understood, or the error stands at a place in it.
/// - The file of a project that nobody trusts makes no verdict milder, shows no path and allows no
///   mode.
/// - The order of the files means nothing.
/// - What is asked once for a simple command covers that command.
pub fn policy(data: &[u8]) {
    let Some([system, user, project, tool, line, path, host, method]) = fields(data) else {
        return;
    };
    let layer =
        |level: PolicyLevel, text: &str| match PolicyLayer::parse(level, "policy.toml", text) {
            Ok(layer) => Some(layer),
            Err(error) => {
                assert!(
                    (1..=text.matches('\n').count() + 1).contains(&error.location.line),
                    "{error} is not in the file"
                );
                None
            }
        };
    let [system, user, project] =
        [(PolicyLevel::System, system), (PolicyLevel::User, user), (PolicyLevel::Project, project)]
            .map(|(level, text)| layer(level, text));
    let mut without = Policy::default();
    system.iter().chain(&user).cloned().for_each(|layer| without.add_layer(layer));
    let mut with = without.clone();
    project.iter().cloned().for_each(|layer| with.add_layer(layer));
    let mut backwards = Policy::default();
    project
        .iter()
        .chain(&user)
        .chain(&system)
        .cloned()
        .for_each(|layer| backwards.add_layer(layer));

    let path = WorkspacePath::parse(path, None).ok();
    let host: Option<HostAddress> = HostAddress::parse(host).ok();
    let mut deeds = vec![Action::Command(line), Action::Write(None), Action::Use];
    deeds.extend(path.iter().flat_map(|path| [Action::Read(path), Action::Write(Some(path))]));
    deeds.extend(host.iter().map(|host| Action::Fetch { host, method }));
    deeds.extend(host.iter().map(Action::Connect));
    for mode in ApprovalMode::ALL {
        assert!(
            without.mode_denied_by(mode).is_none() || with.mode_denied_by(mode).is_some(),
            "a project allows the mode {mode}"
        );
        for deed in &deeds {
            let verdict = |policy: &Policy| -> Verdict {
                policy.verdict(mode, ToolId::new(tool, ""), deed).verdict
            };
            assert!(
                verdict(&with) >= verdict(&without),
                "a project loosens `{deed}` in the mode {mode}"
            );
            assert_eq!(
                verdict(&with),
                verdict(&backwards),
                "the order of files decides on `{deed}` in the mode {mode}"
            );
        }
    }
    assert_eq!(
        with.canonical(),
        backwards.canonical(),
        "the order of files is in the canonical form"
    );
    if let Some(path) = &path {
        assert!(
            with.protected_paths().protection(path) >= without.protected_paths().protection(path),
            "a project shows {path}"
        );
        assert_eq!(
            with.protected_paths().protection(path),
            backwards.protected_paths().protection(path),
            "the order of files decides on {path}"
        );
    }
    if let Some(command) = SimpleCommand::parse(line) {
        assert!(command.scope().covers(line), "the scope of `{line}` does not cover it");
    }
}
