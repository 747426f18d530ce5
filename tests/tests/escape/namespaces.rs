//! The creator of the namespaces at the level `full`: the program itself, bubblewrap where only
//! that is allowed, or nobody.

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::guests::{TestHost, commands};
use cofferdam_tests::program::{ProgramOutput, TestHome};

use super::{host_builder_with, new_host, rules_for_level, run_line};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");
/// Prints the command line of the first process in the namespace.
const FIRST_PROCESS: &str = "ps -o args= -p 1";

/// A host whose commands run at the level `full`, in namespaces that bubblewrap creates.
pub(super) fn host_with_bubblewrap() -> TestHost {
    let commands = commands(rules_for_level(SandboxLevel::Full)).with_bubblewrap_only();
    host_builder_with(commands).build()
}

/// Runs the program as root of a user namespace, after these lines of shell.
fn run_after(preparation: &str, args: &[&str]) -> ProgramOutput {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    let mut command = std::process::Command::new("unshare");
    home.configure(&mut command);
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg(format!("{preparation} && exec \"$@\""))
        .args(["sh", PROGRAM])
        .args(args);
    home.start(command).wait_for_exit()
}

#[test]
fn the_program_creates_the_namespaces_itself() {
    let said = run_line(&new_host(SandboxLevel::Full), FIRST_PROCESS);
    assert!(said.contains("cofferdam supervise-command"), "{said}");
    let said = run_line(&host_with_bubblewrap(), FIRST_PROCESS);
    assert!(said.contains("bwrap"), "{said}");
}

#[test]
fn the_level_full_needs_no_bubblewrap() {
    let hide = "for path in /usr/bin/bwrap /usr/local/bin/bwrap; do
                    if [ -e $path ]; then mount --bind /dev/null $path || exit 1; fi
                done";
    let call = ["tools", "call", "bash", r#"{"command":"echo done"}"#, "--mode", "auto"];
    let ran = run_after(hide, &call);
    assert_eq!((ran.stdout.as_str(), ran.exit_code), ("done\n", 0), "{ran:?}");
    let said = run_after(hide, &["doctor"]).stdout;
    assert!(said.contains("in the sandbox `full`, no network"), "{said}");
}

#[test]
fn a_system_without_user_namespaces_has_the_level_kernel_and_the_program_says_why() {
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
    let said = run_after(forbid, &["doctor"]).stdout;
    assert!(said.contains("in the sandbox `kernel`, no network"), "{said}");
    assert!(said.contains("cannot create the namespaces of the command"), "{said}");
    let call = ["tools", "call", "bash", r#"{"command":"echo done"}"#, "--mode", "auto"];
    let ran = run_after(forbid, &call);
    assert_eq!((ran.stdout.as_str(), ran.exit_code), ("done\n", 0), "{ran:?}");
}
