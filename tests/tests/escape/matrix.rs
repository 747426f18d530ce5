//! Every probe at every level, against the table, and the table in `SECURITY.md` against what was measured.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cofferdam::policy::SandboxLevel;

use super::probes::{ALL, Control, Fate, Probe};
use super::scene::Scene;

const BEGIN: &str = "<!-- measured: begin -->\n";
const END: &str = "<!-- measured: end -->\n";

fn all() -> impl Iterator<Item = &'static Probe> {
    ALL.iter().flat_map(|(_, parts)| parts.iter().flat_map(|probes| probes.iter()))
}

/// Runs all probes at a level, and names those that went otherwise than the table says.
fn surprises(level: SandboxLevel, expected: impl Fn(&Probe) -> Option<Fate>) -> Vec<String> {
    let mut surprises = Vec::new();
    for probe in all() {
        let Some(expected) = expected(probe) else { continue };
        let (fate, said) = Scene::new(level).runs(probe);
        if std::mem::discriminant(&fate) != std::mem::discriminant(&expected) {
            let said: String = said.chars().take(300).collect();
            surprises.push(format!("`{level}`: {}: {fate:?} and not {expected:?}: {}\n    said: {said}", probe.name, probe.line));
        }
    }
    surprises
}

#[test]
fn there_are_many_probes_and_each_has_a_name_of_its_own() {
    let mut names: Vec<_> = all().map(|probe| probe.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().count());
    assert!(names.len() >= 100, "{}", names.len());
}

#[test]
fn without_a_sandbox_the_probes_do_what_they_say() {
    let root = rustix::process::geteuid().is_root();
    let surprises = surprises(SandboxLevel::None, |probe| match probe.control {
        Control::Happens => Some(Fate::Open("nothing prevents it")),
        Control::HappensToRoot => root.then_some(Fate::Open("root may")),
        Control::Harms | Control::Depends => None,
    });
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn full_closes_or_undoes_everything() {
    assert!(all().all(|probe| !matches!(probe.full, Fate::Open(_))));
    let surprises = surprises(SandboxLevel::Full, |probe| Some(probe.full));
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn kernel_closes_or_undoes_everything_but_what_is_said_aloud() {
    let surprises = surprises(SandboxLevel::Kernel, |probe| Some(probe.kernel));
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn the_matrix_in_the_security_document_is_this_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it has a parent").join("SECURITY.md");
    let text = fs::read_to_string(&path).expect("it can be read");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning is marked");
    let (there, after) = rest.split_once(END).expect("the end is marked");
    let measured = matrix();
    if std::env::var_os("UPDATE_MATRIX").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{measured}{END}{after}")).expect("it can be written");
    } else {
        assert_eq!(there, measured, "run again with UPDATE_MATRIX=1");
    }
}

/// The tests above hold every line of it against the machine.
fn matrix() -> String {
    let mut text = String::from("| what a command tries | `full` | `kernel` |\n|---|---|---|\n");
    for (part, parts) in ALL {
        let probes: Vec<Probe> = parts.concat();
        for fates in [(Fate::Closed, Fate::Closed), (Fate::Closed, Fate::Undone), (Fate::Undone, Fate::Undone)] {
            let names: Vec<_> = probes.iter().filter(|probe| (probe.full, probe.kernel) == fates).map(|probe| probe.name).collect();
            if !names.is_empty() {
                let _ = writeln!(text, "| **{part}**: {} | {} | {} |", names.join(", "), in_words(fates.0), in_words(fates.1));
            }
        }
        for probe in probes.iter().filter(|probe| matches!(probe.kernel, Fate::Open(_))) {
            let _ = writeln!(text, "| **{part}**: {} | {} | {} |", probe.name, in_words(probe.full), in_words(probe.kernel));
        }
    }
    text
}

fn in_words(fate: Fate) -> String {
    match fate {
        Fate::Closed => "closed".into(),
        Fate::Undone => "undone".into(),
        Fate::Open(why) => format!("**open**: {why}"),
    }
}
