//! Every probe at every level, against the table, and the table in `SECURITY.md` against what was
//! measured.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cofferdam::policy::SandboxLevel;

use super::environment::ProbeEnvironment;
use super::namespaces::host_with_bubblewrap;
use super::probes::{ALL, ControlOutcome, EscapeProbe, ProbeOutcome};

const BEGIN: &str = "<!-- measured: begin -->\n";
const END: &str = "<!-- measured: end -->\n";

fn all_probes() -> impl Iterator<Item = &'static EscapeProbe> {
    ALL.iter().flat_map(|(_, parts)| parts.iter().flat_map(|probes| probes.iter()))
}

/// Runs all probes at a level, and names those that went otherwise than the table says.
fn find_deviations(
    level: SandboxLevel,
    expected: impl Fn(&EscapeProbe) -> Option<ProbeOutcome>,
) -> Vec<String> {
    find_deviations_in(level, expected, || ProbeEnvironment::new(level))
}

/// The same in environments of another kind.
fn find_deviations_in(
    level: SandboxLevel,
    expected: impl Fn(&EscapeProbe) -> Option<ProbeOutcome>,
    new_environment: impl Fn() -> ProbeEnvironment,
) -> Vec<String> {
    let mut surprises = Vec::new();
    for probe in all_probes() {
        let Some(expected) = expected(probe) else { continue };
        let (fate, said) = new_environment().run(probe);
        if std::mem::discriminant(&fate) != std::mem::discriminant(&expected) {
            let said: String = said.chars().take(300).collect();
            surprises.push(format!(
                "`{level}`: {}: {fate:?} and not {expected:?}: {}\n    said: {said}",
                probe.name, probe.command
            ));
        }
    }
    surprises
}

#[test]
fn there_are_many_probes_and_each_has_a_name_of_its_own() {
    let mut names: Vec<_> = all_probes().map(|probe| probe.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all_probes().count());
    assert!(names.len() >= 100, "{}", names.len());
}

#[test]
fn without_a_sandbox_the_probes_do_what_they_say() {
    let root = rustix::process::geteuid().is_root();
    let surprises = find_deviations(SandboxLevel::None, |probe| match probe.control_outcome {
        ControlOutcome::Succeeds => Some(ProbeOutcome::Allowed("nothing prevents it")),
        ControlOutcome::SucceedsAsRoot => root.then_some(ProbeOutcome::Allowed("root may")),
        ControlOutcome::Harmful | ControlOutcome::MachineDependent => None,
    });
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn full_closes_everything() {
    assert!(all_probes().all(|probe| probe.full_outcome == ProbeOutcome::Blocked));
    let surprises = find_deviations(SandboxLevel::Full, |probe| Some(probe.full_outcome));
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn full_without_a_private_view_closes_or_undoes_everything() {
    let is_open = |probe: &EscapeProbe| matches!(probe.direct_outcome, ProbeOutcome::Allowed(_));
    assert!(!all_probes().any(is_open));
    let surprises = find_deviations_in(
        SandboxLevel::Full,
        |probe| Some(probe.direct_outcome),
        || ProbeEnvironment::with_host(host_with_bubblewrap()),
    );
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn kernel_closes_or_undoes_everything_but_what_is_said_aloud() {
    let surprises = find_deviations(SandboxLevel::Kernel, |probe| Some(probe.kernel_outcome));
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn the_matrix_in_the_security_document_is_this_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("it has a parent")
        .join("SECURITY.md");
    let text = fs::read_to_string(&path).expect("it can be read");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning is marked");
    let (there, after) = rest.split_once(END).expect("the end is marked");
    let measured = render_matrix();
    if std::env::var_os("UPDATE_MATRIX").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{measured}{END}{after}"))
            .expect("it can be written");
    } else {
        assert_eq!(there, measured, "run again with UPDATE_MATRIX=1");
    }
}

/// The tests above hold every line of it against the machine.
fn render_matrix() -> String {
    let mut text = String::from(
        "| what a command tries | `full` | `full` without a private view | `kernel` \
            |\n|---|---|---|---|\n",
    );
    for (part, parts) in ALL {
        let probes: Vec<EscapeProbe> = parts.concat();
        let mut lines: Vec<([ProbeOutcome; 3], Vec<&str>)> = Vec::new();
        for probe in &probes {
            let outcomes = [probe.full_outcome, probe.direct_outcome, probe.kernel_outcome];
            match lines.iter_mut().find(|(known, _)| *known == outcomes) {
                Some((_, names)) => names.push(probe.name),
                None => lines.push((outcomes, vec![probe.name])),
            }
        }
        // What is blocked at every level comes first, what is possible last.
        lines.sort_by_key(|(outcomes, _)| outcomes.map(weight));
        for (outcomes, names) in lines {
            let outcomes = outcomes.map(describe).join(" | ");
            let _ = writeln!(text, "| **{part}**: {} | {outcomes} |", names.join(", "));
        }
    }
    text
}

fn weight(fate: ProbeOutcome) -> (u8, &'static str) {
    match fate {
        ProbeOutcome::Blocked => (0, ""),
        ProbeOutcome::Restored => (1, ""),
        ProbeOutcome::Allowed(why) => (2, why),
    }
}

fn describe(fate: ProbeOutcome) -> String {
    match fate {
        ProbeOutcome::Blocked => "blocked".into(),
        ProbeOutcome::Restored => "reverted".into(),
        ProbeOutcome::Allowed(why) => format!("**possible**: {why}"),
    }
}
