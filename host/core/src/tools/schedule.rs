//! The order of the calls of one response (R-15, R-15b). Pure: tiers and paths in, steps out.

use crate::agent::ReorderPolicy;
use crate::policy::{FileGrant, Grants, Tier, WorkspacePath};

/// The properties of a call that determine its position.
#[derive(Clone, Debug)]
pub(super) struct PlannedCall<'a> {
    pub(super) tier: Tier,
    pub(super) touched_files: TouchedFiles,
    /// The tool, if it keeps state. Its calls run one after another, in the model's order.
    pub(super) stateful_tool: Option<&'a str>,
}

/// The files that a call may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TouchedFiles {
    /// No files: the tool has no file permission.
    Nothing,
    /// These paths and everything below them.
    Paths(Vec<WorkspacePath>),
    /// Any file.
    Any,
}

/// The largest number of pairs of paths that are compared for two calls. Calls with more count as
/// overlapping. A response can have a thousand calls, each with thousands of paths.
const MAX_COMPARED_PAIRS: usize = 256;

impl TouchedFiles {
    /// Determines the files of a call from the tool's permissions and the paths in its arguments.
    pub(super) fn from_grants(grants: &Grants, paths: &[WorkspacePath]) -> Self {
        // Commands, sub-agents and local servers can access files that nobody knows beforehand.
        let has_unknown_files = grants.commands || grants.agents || !grants.fetch.is_empty();
        match (grants.files, has_unknown_files, paths.is_empty()) {
            (FileGrant::None, false, _) => Self::Nothing,
            (FileGrant::Read | FileGrant::ReadWrite, false, false) => Self::Paths(paths.to_vec()),
            (FileGrant::Read | FileGrant::ReadWrite, false, true) | (_, true, _) => Self::Any,
        }
    }
}

/// One step of the schedule. The numbers are indexes into the list of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScheduleStep {
    /// Calls that run in parallel.
    Parallel(Vec<usize>),
    /// A call that runs alone.
    Exclusive(usize),
}

/// Orders calls into steps. Each call is in exactly one step.
pub(super) fn plan_steps(calls: &[PlannedCall<'_>], reorder: ReorderPolicy) -> Vec<ScheduleStep> {
    let writes: Vec<usize> = (0..calls.len()).filter(|&i| calls[i].tier == Tier::Write).collect();
    // For each call, the number of writes that must run first: all up to the last earlier write
    // that overlaps with it.
    let behind = |i: usize| match reorder {
        ReorderPolicy::Always => 0,
        ReorderPolicy::Safe => {
            let sees =
                |&&w: &&usize| w < i && calls[i].touched_files.may_overlap(&calls[w].touched_files);
            writes.iter().rposition(|w| sees(&w)).map_or(0, |position| position + 1)
        }
    };
    let mut behind: Vec<usize> = (0..calls.len()).map(behind).collect();
    for i in 0..calls.len() {
        if let Some(before) = (0..i).rev().find(|&before| {
            calls[i].stateful_tool.is_some()
                && calls[before].stateful_tool == calls[i].stateful_tool
        }) {
            behind[i] = behind[i].max(behind[before]);
        }
    }
    let mut steps = Vec::new();
    for round in 0..=writes.len() {
        for tier in [Tier::Research, Tier::ReadOnly] {
            let together: Vec<usize> =
                (0..calls.len()).filter(|&i| calls[i].tier == tier && behind[i] == round).collect();
            steps.extend(split_stateful(calls, together).into_iter().map(ScheduleStep::Parallel));
        }
        if let Some(&write) = writes.get(round) {
            steps.push(ScheduleStep::Exclusive(write));
        }
    }
    steps
}

/// Splits parallel calls into groups, so that no stateful tool runs in parallel with itself.
fn split_stateful(calls: &[PlannedCall<'_>], together: Vec<usize>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for call in together {
        let stateful = calls[call].stateful_tool;
        let last = groups.iter().rposition(|group| {
            stateful.is_some() && group.iter().any(|&other| calls[other].stateful_tool == stateful)
        });
        let group = last.map_or(0, |last| last + 1);
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(call);
    }
    groups
}

impl TouchedFiles {
    /// Returns whether two calls may touch the same file.
    pub(super) fn may_overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::Paths(ours), Self::Paths(theirs)) => {
                let pairs = ours.len().saturating_mul(theirs.len());
                pairs > MAX_COMPARED_PAIRS
                    || ours.iter().any(|a| theirs.iter().any(|b| a.overlaps(b)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r098_many_calls_with_many_paths_are_ordered_quickly() {
        let paths = |name: &str, count: usize| -> TouchedFiles {
            TouchedFiles::Paths(
                (0..count)
                    .map(|n| WorkspacePath::parse(&format!("{name}/{n}"), None).expect("a path"))
                    .collect(),
            )
        };
        let call = |tier: Tier, touches: TouchedFiles| PlannedCall {
            tier,
            touched_files: touches,
            stateful_tool: None,
        };
        let started = std::time::Instant::now();
        let two = [call(Tier::Write, paths("a", 50_000)), call(Tier::ReadOnly, paths("b", 50_000))];
        assert_eq!(
            plan_steps(&two, ReorderPolicy::Safe),
            [ScheduleStep::Exclusive(0), ScheduleStep::Parallel(vec![1])],
            "calls with too many paths are not compared and count as overlapping"
        );
        let few = [call(Tier::Write, paths("a", 10)), call(Tier::ReadOnly, paths("b", 10))];
        assert_eq!(
            plan_steps(&few, ReorderPolicy::Safe),
            [ScheduleStep::Parallel(vec![1]), ScheduleStep::Exclusive(0)]
        );
        let tier = |n: usize| if n.is_multiple_of(2) { Tier::Write } else { Tier::ReadOnly };
        let many: Vec<PlannedCall<'_>> =
            (0..400).map(|n| call(tier(n), paths(&n.to_string(), 16))).collect();
        plan_steps(&many, ReorderPolicy::Safe);
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }

    fn planned_call(word: &str) -> PlannedCall<'_> {
        let (tier, path) = word.split_once(' ').unwrap_or((word, "*"));
        let stateful = tier.strip_prefix("note-");
        let tier = match stateful.map_or(tier, |_| "read") {
            "research" => Tier::Research,
            "read" => Tier::ReadOnly,
            "write" => Tier::Write,
            _ => panic!("{word}"),
        };
        let touches = match path {
            "*" => TouchedFiles::Any,
            "-" => TouchedFiles::Nothing,
            path => TouchedFiles::Paths(vec![WorkspacePath::parse(path, None).unwrap()]),
        };
        PlannedCall { tier, touched_files: touches, stateful_tool: stateful }
    }

    fn schedule_text(calls: &[&str], reorder: ReorderPolicy) -> String {
        let calls: Vec<_> = calls.iter().map(|word| planned_call(word)).collect();
        let steps = plan_steps(&calls, reorder).into_iter().map(|step| match step {
            ScheduleStep::Parallel(calls) => format!("{calls:?}"),
            ScheduleStep::Exclusive(call) => call.to_string(),
        });
        steps.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn r015_research_then_reads_then_writes_one_by_one() {
        let calls = ["read", "write", "research", "read", "write"];
        assert_eq!(schedule_text(&calls, ReorderPolicy::Always), "[2] [0, 3] 1 4");
    }

    #[test]
    fn r015b_a_read_behind_a_write_stays_behind_it() {
        assert_eq!(schedule_text(&["read", "write", "read"], ReorderPolicy::Safe), "[0] 1 [2]");
        assert_eq!(
            schedule_text(&["write", "read", "read", "write", "read"], ReorderPolicy::Safe),
            "0 [1, 2] 3 [4]"
        );
    }

    #[test]
    fn r015b_unless_the_paths_are_known_and_disjoint() {
        assert_eq!(schedule_text(&["write a", "read b"], ReorderPolicy::Safe), "[1] 0");
        assert_eq!(schedule_text(&["write a", "read a"], ReorderPolicy::Safe), "0 [1]");
        assert_eq!(schedule_text(&["write a/b", "read a"], ReorderPolicy::Safe), "0 [1]");
        assert_eq!(schedule_text(&["write", "read b"], ReorderPolicy::Safe), "0 [1]");
        assert_eq!(
            schedule_text(&["write a", "write b", "read a"], ReorderPolicy::Safe),
            "0 [2] 1"
        );
    }

    #[test]
    fn a_call_without_files_never_waits() {
        assert_eq!(schedule_text(&["write", "read -"], ReorderPolicy::Safe), "[1] 0");
    }

    #[test]
    fn a_stateful_tool_never_runs_in_parallel_with_itself() {
        assert_eq!(
            schedule_text(
                &["note-a -", "read", "note-a -", "note-b -", "note-a -"],
                ReorderPolicy::Safe
            ),
            "[0, 1, 3] [2] [4]"
        );
        // By its paths the second call could run ahead of the write, but not ahead of the first
        // call.
        assert_eq!(
            schedule_text(&["write a", "note-a a", "note-a b", "note-b b"], ReorderPolicy::Safe),
            "[3] 0 [1] [2]"
        );
        assert_eq!(
            schedule_text(&["write", "note-a", "note-a"], ReorderPolicy::Always),
            "[1] [2] 0"
        );
    }

    #[test]
    fn every_call_runs_exactly_once() {
        let words = [
            "read", "write", "research", "read a", "note-a", "write a", "note-a -", "read -",
            "write b", "note-b", "read b",
        ];
        for reorder in [ReorderPolicy::Safe, ReorderPolicy::Always] {
            let calls: Vec<_> = words.iter().map(|word| planned_call(word)).collect();
            let mut all: Vec<usize> = plan_steps(&calls, reorder)
                .into_iter()
                .flat_map(|step| match step {
                    ScheduleStep::Parallel(calls) => calls,
                    ScheduleStep::Exclusive(call) => vec![call],
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..words.len()).collect::<Vec<_>>());
        }
    }
}
