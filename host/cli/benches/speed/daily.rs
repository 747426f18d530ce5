//! Benchmarks of daily work with git, make, cargo, npm and Python, in trees of three sizes.

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

/// What is measured.
struct DailyTask {
    name: &'static str,
    /// The program that a machine may lack.
    program: &'static str,
    /// Leaves the tree so that it can run again. A line with `:` may change files, so it gets a
    /// private view.
    line: &'static str,
}

const TASKS: [DailyTask; 11] = [
    DailyTask { name: "git status, read-only", program: "git", line: "git status" },
    DailyTask { name: "git status, private view", program: "git", line: "git status; :" },
    DailyTask {
        name: "git commit of one file",
        program: "git",
        line: "date +%N >> d0/e0/f0; git commit --quiet --all -m Next",
    },
    DailyTask {
        name: "git switch to a branch and back",
        program: "git",
        line: "git switch --quiet other; git switch --quiet main",
    },
    DailyTask {
        name: "make, one file changed",
        program: "make",
        line: "touch d0/e0/f1; make --quiet",
    },
    DailyTask { name: "grep -r, private view", program: "grep", line: "grep -r needle . ; :" },
    DailyTask {
        name: "cargo build, from nothing",
        program: "cargo",
        line: "cd rust; rm -rf target; cargo build --offline --quiet",
    },
    DailyTask {
        name: "cargo build, one file changed",
        program: "cargo",
        line: "cd rust; touch src/main.rs; cargo build --offline --quiet",
    },
    DailyTask {
        name: "npm install, from nothing",
        program: "npm",
        line: "cd web; rm -rf node_modules; npm install --offline --silent --no-audit --no-fund",
    },
    DailyTask { name: "npm test", program: "npm", line: "cd web; npm test --silent >out.txt" },
    DailyTask {
        name: "Python's unittest",
        program: "python3",
        line: "cd python; python3 -m unittest -q 2>out.txt",
    },
];

pub(crate) fn run(runtime: &Runtime) {
    for files in SIZES {
        let [ours, theirs] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        for directory in [&ours, &theirs] {
            grow(directory.path(), files);
        }
        let bench = bench(SandboxLevel::Full, ours.path());
        for DailyTask { name, program, line } in TASKS {
            let name = format!("{files} files: {name}");
            if !is_installed(program) {
                println!("{name:44} not measured, because `{program}` is missing");
                continue;
            }
            let ours = || call(&bench, runtime, line);
            against(&Line { name: &name, target: "" }, ROUNDS, ours, || {
                native(theirs.path(), line);
            });
        }
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
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
    fs::write(directory.join(".gitignore"), "out\nout.txt\ntarget/\nnode_modules/\n__pycache__/\n")
        .expect("it is written");
    grow_packages(directory);
    native(
        directory,
        "git init --quiet --initial-branch main; git config user.name A; git config user.email \
            a@example.org; echo needle > d0/e0/f2; git add .; git commit --quiet -m First; git \
            switch --quiet --create other; for f in d0/e1/*; do echo other > $f; done; git commit \
            --quiet --all -m Other; git switch --quiet main; sleep 1; git status",
    );
}

/// Creates a small package of each language in the repository.
pub(crate) fn grow_packages(directory: &Path) {
    let write = |path: &str, text: &str| {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("it is made");
        fs::write(path, text).expect("it is written");
    };
    let parts = ["one", "two", "three", "four"];
    let needed: String =
        parts.iter().map(|part| format!("{part} = {{ path = \"{part}\" }}\n")).collect();
    let main = "[package]\nname = \"small\"\nedition = \"2021\"\n[workspace]\n[dependencies]\n";
    write("rust/Cargo.toml", &format!("{main}{needed}"));
    for part in parts {
        let manifest = format!("[package]\nname = \"{part}\"\nedition = \"2021\"\n");
        write(&format!("rust/{part}/Cargo.toml"), &manifest);
        let functions: String = (1..150)
            .map(|n| {
                format!("pub fn f{n}(x: u32) -> String {{ format!(\"{{:?}}\", vec![x; {n}]) }}\n")
            })
            .collect();
        write(&format!("rust/{part}/src/lib.rs"), &functions);
    }
    let calls: String =
        parts.iter().map(|part| format!("println!(\"{{}}\", {part}::f1(1));")).collect();
    write("rust/src/main.rs", &format!("fn main() {{ {calls} }}\n"));
    write(
        "web/package.json",
        r#"{"name": "web", "version": "1.0.0", "scripts": {"test": "node --test"},
            "dependencies": {"part": "file:part"}}"#,
    );
    write("web/part/package.json", r#"{"name": "part", "version": "1.0.0"}"#);
    write("web/part/index.js", "module.exports = (a, b) => a + b;\n");
    write(
        "web/sum.test.js",
        "require('node:test')('sum', () => require('node:assert').equal(require('./part')(1, 2), \
            3));\n",
    );
    let tests: String = (0..100)
        .map(|n| format!("    def test_{n}(self): self.assertEqual({n} + 1, {})\n", n + 1))
        .collect();
    let head = "import unittest\n\nclass Sums(unittest.TestCase):\n";
    write("python/test_sums.py", &format!("{head}{tests}"));
}
