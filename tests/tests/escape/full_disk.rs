//! A command that fills the disk destroys no protected file.

use std::process::Command;

use cofferdam_tests::program::TestHome;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// A script that runs in mounts of its own. `$1` is the program, `$2` an empty directory.
///
/// The first command removes protected files and fills the disk, so that they cannot be restored.
/// The second still finds the disk full, and the third does not.
const SCRIPT: &str = r#"
    mount -t tmpfs -o size=24m none "$2" && cd "$2" && git init --quiet .
    printf '[core]\nbare = false\n' > .git/config
    printf '#!/bin/sh\nmine\n' > .git/hooks/pre-push && chmod 755 .git/hooks/pre-push
    mkdir .vscode && echo '{}' > .vscode/settings.json
    run() { "$program" -C . tools call bash "{\"command\":\"$1\"}" --mode auto 2>&1; }
    program=$1
    run 'rm -f .git/config .git/hooks/pre-push .vscode/settings.json; cat /dev/zero > big'
    echo "== full"
    run 'true'
    rm big
    echo "== free"
    run 'true'
    echo "== files"
    cat .git/config .git/hooks/pre-push .vscode/settings.json
    stat -c %a .git/hooks/pre-push
    echo "== quiet"
    run 'true'
"#;

#[test]
fn protected_files_that_a_full_disk_has_no_space_for_are_restored_later() {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"))
        .with_file("../config/cofferdam/config.toml", "[commands]\nat_most = \"kernel\"\n");
    let disk = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("unshare");
    home.configure(&mut command);
    let output = command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh", PROGRAM])
        .arg(disk.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let part = |name: &str| {
        let after = said.split_once(&format!("== {name}\n")).expect(name).1;
        after.split("\n== ").next().unwrap_or_default().to_owned()
    };
    assert!(said.contains("the original files are kept in"), "{said}");
    assert!(part("full").contains("COULD NOT be restored"), "{said}");
    assert!(part("free").contains("it was restored"), "{said}");
    assert_eq!(part("files"), "[core]\nbare = false\n#!/bin/sh\nmine\n{}\n755", "{said}");
    assert!(!part("quiet").contains("[sandbox]"), "{said}");
}
