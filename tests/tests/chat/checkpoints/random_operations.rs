//! Random operations of a command with checkpoints between them, compared with a run that writes a
//! directory itself.

use std::process::Command;

use serde_json::json;

use super::{JobChat, describe_tree, write};
use crate::new_home;

/// The number of rounds of one run. There is a checkpoint after some of them.
const ROUNDS: usize = 12;

/// Does random operations in each round.
const SCRIPT: &str = r#"
import mmap, os, random, shutil, sys, time
seed, rounds, waits = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "wait"
rng = random.Random(seed)
names = ["a", "b", "c", "d"]
open_files = []
SKIP = {"steps", "script.py", "script.sh", ".git"}

def entries():
    found = []
    for top, directories, files in os.walk("."):
        directories[:] = sorted(d for d in directories if not (top == "." and d in SKIP))
        for name in sorted(directories) + sorted(files):
            if not (top == "." and name in SKIP):
                found.append(os.path.join(top, name))
    return found

def pick(test):
    found = [path for path in entries() if test(path)]
    return rng.choice(found) if found else None

def is_file(path): return os.path.isfile(path) and not os.path.islink(path)
def is_directory(path): return os.path.isdir(path) and not os.path.islink(path)

def fresh():
    top = rng.choice(["."] + [p for p in entries() if is_directory(p)])
    return os.path.join(top, rng.choice(names) + str(rng.randrange(4)))

def remove(path):
    if is_directory(path): shutil.rmtree(path)
    elif os.path.lexists(path): os.unlink(path)

def step(number):
    what, path = rng.randrange(14), fresh()
    text = "%d.%d\n" % (number, rng.randrange(1000))
    if what in (0, 1, 2):
        if not is_directory(path):
            if os.path.islink(path): os.unlink(path)
            open(path, "a").write(text)
    elif what == 3:
        if not os.path.lexists(path): os.mkdir(path)
    elif what == 4:
        other = pick(is_file)
        if other: open(other, "w").write(text)
    elif what == 5:
        other = pick(lambda p: True)
        if other: remove(other)
    elif what == 6:
        other = pick(is_file)
        if other and not is_directory(path): os.rename(other, path)
    elif what == 7:
        other = pick(is_directory)
        inside = lambda one, two: (one + "/").startswith(two + "/")
        if other and not inside(path, other) and not inside(other, path):
            remove(path)
            # A view cannot rename a directory that was there before.
            if other.startswith("./old"):
                shutil.copytree(other, path, symlinks=True)
                shutil.rmtree(other)
            else: os.rename(other, path)
    elif what == 8:
        other = pick(lambda p: not os.path.islink(p))
        if other: os.chmod(other, rng.choice([0o700, 0o755]))
    elif what == 9:
        if not os.path.lexists(path): os.symlink(rng.choice(names), path)
    elif what == 10:
        other = pick(lambda p: is_file(p) and os.stat(p).st_nlink > 0)
        if other and not os.path.lexists(path):
            # A hard link to a file that was there before has two files in a view.
            if other.startswith("./old"): shutil.copyfile(other, path)
            else: os.link(other, path)
    elif what == 11:
        other = pick(is_file)
        if other: open_files.append(open(other, "r+"))
    elif what == 12:
        if open_files:
            file = rng.choice(open_files)
            file.seek(0, 2); file.write(text); file.flush()
    elif what == 13:
        other = pick(lambda p: is_file(p) and os.path.getsize(p) > 0)
        if other:
            with open(other, "r+b") as file:
                mmap.mmap(file.fileno(), 0)[0:1] = rng.choice([b"x", b"y"])

for number in range(1, rounds + 1):
    if waits:
        while str(number) not in os.listdir("steps"): time.sleep(0.005)
    for _ in range(10): step(number)
    print("did", number, flush=True)
"#;

#[test]
fn random_operations_with_checkpoints_have_the_results_of_a_direct_run() {
    let cases = std::env::var("COFFERDAM_CHECKPOINT_CASES").ok();
    let cases = cases.map_or(3, |cases| cases.parse().expect("a number"));
    for seed in 0..cases {
        compare_with_direct_run(seed);
    }
}

fn prepare(write: &dyn Fn(&str, &str)) {
    for (path, text) in [("old1", "1\n"), ("olds/old2", "2\n"), ("olds/deep/old3", "3\n")] {
        write(path, text);
    }
    write("script.py", SCRIPT);
}

fn compare_with_direct_run(seed: u64) {
    let home = new_home();
    prepare(&|path, text| write(&home, path, text));
    let command = format!("export PATH=/usr/bin:/bin; exec python3 script.py {seed} {ROUNDS} wait");
    let mut chat = JobChat::start_line(home, json!({"command": command, "background": true}));
    for round in 1..=ROUNDS {
        chat.run_step(round);
        let is_last = round == ROUNDS;
        if is_last {
            let end = chat.wait_for_end();
            assert!(end.contains("exit code 0") && !end.contains("discarded"), "{seed}: {end}");
        } else if !(seed + round as u64).is_multiple_of(3) {
            let shown = chat.ask("/jobs commit 1");
            assert!(!shown.contains("cannot commit"), "seed {seed}, round {round}: {shown}");
        } else {
            continue;
        }
        let direct = new_home();
        prepare(&|path, text| write(&direct, path, text));
        let ran = Command::new("/usr/bin/python3")
            .args(["script.py", &seed.to_string(), &round.to_string(), "direct"])
            .current_dir(direct.workspace())
            .output()
            .expect("it runs");
        assert!(ran.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&ran.stderr));
        let (found, expected) =
            (describe_tree(&chat.home.workspace()), describe_tree(&direct.workspace()));
        for (path, text) in &expected {
            assert_eq!(found.get(path), Some(text), "seed {seed}, round {round}: {path}");
        }
        let more: Vec<_> = found.keys().filter(|path| !expected.contains_key(*path)).collect();
        assert!(more.is_empty(), "seed {seed}, round {round}: {more:?}");
    }
    chat.leave();
}
