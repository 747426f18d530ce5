//! Hosts that are killed while they commit the changes of a command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cofferdam_tests::program::TestHome;

use super::commits::{call, home};
use super::scripts::RandomNumbers;
use super::{describe_tree, differences};

/// The number of kills.
const KILLS: u64 = 500;
/// The files that the command changes, and those that it removes.
const FILES: usize = 60;
/// The latest first kill after the commit has begun, in microseconds.
const FIRST_DELAY_MICROS: u64 = 60_000;
/// The bounds of the latest kill. It comes later after a kill that left the old tree, and earlier
/// after one that left the new tree, so that both happen however busy the machine is.
const MIN_DELAY_MICROS: u64 = 2_000;
const MAX_DELAY_MICROS: u64 = 4_000_000;

const LINE: &str = "for f in changed/*; do echo new >> $f; done; rm removed/*; mkdir -p new/a; \
    echo x > new/a/b; chmod 700 changed; rm -r tree; echo x > tree";

fn fill(root: &Path) {
    for name in ["changed", "removed", "tree/a"] {
        std::fs::create_dir_all(root.join(name)).expect("it is made");
    }
    for number in 0..FILES {
        for directory in ["changed", "removed", "tree/a"] {
            let path = root.join(directory).join(number.to_string());
            std::fs::write(path, "old\n").expect("it is written");
        }
    }
}

fn clear(root: &Path) {
    for entry in std::fs::read_dir(root).expect("it is listed").flatten() {
        let path = entry.path();
        let removed = match entry.file_type().expect("it is known").is_dir() {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        };
        removed.expect("it is removed");
    }
}

/// Whether a commit has begun: its record has the slots for the old and the new entries.
fn has_slots(undo: &Path) -> bool {
    let directories = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let records = directories(undo).into_iter().flat_map(|project| directories(&project));
    records.into_iter().any(|record| record.join("slots").exists())
}

/// Runs the command, kills the host at a random moment of the commit, and returns the tree after
/// the next start.
fn kill_once(
    home: &TestHome,
    random: &mut RandomNumbers,
    latest_micros: u64,
) -> BTreeMap<String, String> {
    let undo = home.path().join("state/cofferdam/undo");
    let _ = std::fs::remove_dir_all(&undo);
    clear(&home.workspace());
    fill(&home.workspace());
    let mut host = call(home, LINE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(120);
    while !has_slots(&undo) && host.try_wait().expect("it is a child").is_none() {
        assert!(Instant::now() < deadline, "the commit does not begin");
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(Duration::from_micros(random.below(latest_micros)));
    let _ = host.kill();
    let _ = host.wait();
    let next = home.run(&["tools", "call", "read_file", r#"{"path":"changed/0"}"#]);
    assert_eq!(next.exit_code, 0, "{next:?}");
    describe_tree(&home.workspace())
}

#[test]
fn a_host_that_is_killed_while_it_commits_leaves_the_old_or_the_new_tree() {
    let [old, new] = [(); 2].map(|()| AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for part in 0..2 {
            let (old, new) = (&old, &new);
            scope.spawn(move || {
                let home = home();
                fill(&home.workspace());
                let before = describe_tree(&home.workspace());
                let ran = home.start(call(&home, LINE)).wait_for_exit();
                assert_eq!(ran.exit_code, 0, "{ran:?}");
                let after = describe_tree(&home.workspace());
                let mut latest = FIRST_DELAY_MICROS;
                for seed in (part..KILLS).step_by(2) {
                    let found = kill_once(&home, &mut RandomNumbers(seed), latest);
                    let (count, next) = match found == before {
                        true => (old, latest * 5 / 4),
                        false => (new, latest * 4 / 5),
                    };
                    latest = next.clamp(MIN_DELAY_MICROS, MAX_DELAY_MICROS);
                    count.fetch_add(1, Ordering::Relaxed);
                    let is_whole = found == before || found == after;
                    assert!(is_whole, "seed {seed}: {:#?}", differences(&before, &found));
                }
            });
        }
    });
    let counts = (old.into_inner(), new.into_inner());
    assert!(counts.0 > 20 && counts.1 > 20, "the kills hit both sides of the commit: {counts:?}");
    println!("{counts:?} kills left the old and the new tree");
}
