//! Benchmarks of the command sandbox: each level against the same command without a sandbox.

use std::process::Command;

use cofferdam::policy::SandboxLevel;
use cofferdam::sandbox::InstanceAllocation;
use tokio::runtime::Runtime;

use crate::calls::Bench;
use crate::folders;
use crate::measure::{self, Line};

pub(crate) fn run(runtime: &Runtime) {
    let directory = tempfile::tempdir().expect("a folder");
    for (level, target) in [
        (SandboxLevel::None, ""),
        (SandboxLevel::Kernel, "≤ 10 ms"),
        (SandboxLevel::Full, "≤ 40 ms"),
    ] {
        let bench = Bench::new(InstanceAllocation::Pooled, directory.path())
            .with_commands(folders::commands(level));
        let name = format!("bash `true`, sandbox `{level}`");
        measure::against(
            &Line { name: &name, target },
            30,
            || {
                bench.call(runtime, "bash", r#"{"command":"true"}"#);
            },
            || {
                assert!(
                    Command::new("sh").args(["-c", "true"]).status().expect("it runs").success()
                )
            },
        );
    }
}
