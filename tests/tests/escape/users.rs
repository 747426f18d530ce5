//! The suite again as an ordinary user, if it runs as root: most users are ordinary.

use std::process::Command;

use cofferdam_tests::program::wait_until;

#[test]
fn an_ordinary_user_is_as_safe_as_root() {
    if !rustix::process::geteuid().is_root() {
        // All other tests of this file were it.
        return;
    }
    // Nobody can look into the folder of a root's build, so the programs are copied.
    let folder = tempfile::tempdir().expect("a folder");
    let set = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("it is set");
    };
    set(folder.path());
    let tests = folder.path().join("deps");
    std::fs::create_dir(&tests).expect("it is made");
    let own = std::env::current_exe().expect("it has a path");
    std::fs::copy(&own, tests.join("escape")).expect("it is copied");
    std::fs::copy(
        env!("CARGO_BIN_EXE_cofferdam-under-test"),
        folder.path().join("cofferdam-under-test"),
    )
    .expect("it is copied");
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("it is made");
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).expect("it is given away");
    std::fs::write(home.join("file-of-root"), "root's\n").expect("it is written");
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
        .arg(tests.join("escape"))
        .args([
            "closes",
            "without_a_sandbox",
            "this_machine",
            "keeps_no_later",
            "nothing_runs",
            "closed_directories",
            "care_",
            "--test-threads",
            "2",
        ])
        .env_clear()
        .envs([
            ("PATH", "/usr/bin:/bin:/usr/local/bin"),
            ("HOME", home.to_str().expect("it has a text")),
        ])
        .env("TMPDIR", &home)
        .current_dir(&home)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("23 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // What a supervisor makes for its command goes with it, also for those who cannot enter
    // everything. It does so after its report.
    let left = || -> Vec<String> {
        let entries = std::fs::read_dir(&home).expect("it is listed").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let kept = ["cofferdam-tests-set-aside", "cofferdam-tests-layers"];
        names
            .filter(|name| name.starts_with("cofferdam-") && !kept.contains(&name.as_str()))
            .collect()
    };
    wait_until("nothing is left", || left().is_empty());
    let layers = std::fs::read_dir(home.join("cofferdam-tests-layers")).expect("it is listed");
    assert_eq!(layers.count(), 0, "the changes of commands");
}
