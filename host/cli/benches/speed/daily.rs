//! Benchmarks of daily work with git and make, in trees of three sizes.

use std::fs;
use std::path::Path;

use cofferdam::policy::SandboxLevel;
use tokio::runtime::Runtime;

use crate::commands::{bench, call, native};
use crate::measure::{Line, against};

/// The numbers of files, in directories of 100.
const SIZES: [usize; 3] = [1_000, 20_000, 100_000];
/// The number of measurements. The first of each side is not counted.
const ROUNDS: usize = 3;

/// What is measured: its name, and the command line.
///
/// Each line leaves the tree so that it can run again. A command with `:` may change files, so it
/// gets a private view.
const WORK: [(&str, &str); 6] = [
    ("git status, read-only", "git status"),
    ("git status, private view", "git status; :"),
    ("git commit of one file", "date +%N >> d0/e0/f0; git commit --quiet --all -m Next"),
    ("git switch to a branch and back", "git switch --quiet other; git switch --quiet main"),
    ("make, one file changed", "touch d0/e0/f1; make --quiet"),
    ("grep -r, private view", "grep -r needle . ; :"),
];

pub(crate) fn run(runtime: &Runtime) {
    for files in SIZES {
        let [ours, theirs] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        for directory in [&ours, &theirs] {
            grow(directory.path(), files);
        }
        let bench = bench(SandboxLevel::Full, ours.path());
        for (name, line) in WORK {
            let name = format!("{files} files: {name}");
            let ours = || call(&bench, runtime, line);
            against(&Line { name: &name, target: "" }, ROUNDS, ours, || {
                native(theirs.path(), line);
            });
        }
    }
}

/// Creates a repository with this many files, and a branch that differs in 100 of them.
fn grow(directory: &Path, files: usize) {
    for number in 0..files / 100 {
        let below = directory.join(format!("d{}/e{number}", number / 50));
        fs::create_dir_all(&below).expect("it is made");
        for file in 0..100 {
            fs::write(below.join(format!("f{file}")), "text\n").expect("it is written");
        }
    }
    let makefile = "out: $(wildcard d0/*/f1)\n\tcat $^ > out\n";
    fs::write(directory.join("Makefile"), makefile).expect("it is written");
    fs::write(directory.join(".gitignore"), "out\n").expect("it is written");
    native(
        directory,
        "git init --quiet --initial-branch main; git config user.name A; git config user.email \
            a@example.org; echo needle > d0/e0/f2; git add .; git commit --quiet -m First; git \
            switch --quiet --create other; for f in d0/e1/*; do echo other > $f; done; git commit \
            --quiet --all -m Other; git switch --quiet main; sleep 1; git status",
    );
}
