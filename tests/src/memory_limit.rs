//! A limit on the memory of a test.

#![expect(
    clippy::expect_used,
    reason = "a harness that does not work fails the test that needs it"
)]

use std::fs;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Says that this process is the one with the limit.
const LIMITED_VARIABLE: &str = "COFFERDAM_TEST_WITH_LITTLE_MEMORY";

/// Runs a test in a process of its own, which dies when it takes more than so many bytes beyond
/// what it has at the start.
///
/// `test` is the name of the test that calls this, as the harness has it; the rest of it belongs
/// behind `if !within(…) { return }`. Where the size of a process cannot be told, there is no
/// limit.
pub fn run_with_limit(bytes: u64, test: &str) -> bool {
    if std::env::var_os(LIMITED_VARIABLE).is_some() {
        if let Some(size) = address_space_bytes() {
            let maximum = getrlimit(Resource::As).maximum;
            setrlimit(Resource::As, Rlimit { current: Some(size + bytes), maximum })
                .expect("it can be lowered");
        }
        return true;
    }
    let program = std::env::current_exe().expect("this program is a file");
    let ran = Command::new(program)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(LIMITED_VARIABLE, "1")
        .output()
        .expect("it starts");
    let said =
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{}: {said}", ran.status);
    assert!(said.contains("1 passed"), "there is no test named {test}: {said}");
    false
}

/// Bytes of address space that this process has.
fn address_space_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?;
    Some(kib << 10)
}
