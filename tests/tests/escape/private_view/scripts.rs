//! Random shell scripts, run directly and as a transaction: the trees are equal afterwards, and
//! equal to the start after an undo.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam_tests::guests::TestHost;

use super::{describe_tree, differences, private_host, undo};
use crate::run_line;

/// The number of scripts with files and directories.
const FILE_SCRIPTS: u64 = 1000;
/// The number of scripts with git.
const GIT_SCRIPTS: u64 = 60;
/// The steps of one script.
const STEPS: u64 = 12;
/// What is there before each script.
const START: &str = "umask 022; mkdir -p a/b c/d/e empty; echo 1 > a/f; echo 2 > a/b/f; echo 3 > \
    c/f; echo 4 > c/d/f; echo 5 > c/d/e/f; echo 6 > f; ln -s a/f link; chmod 640 c/f; chmod 750 \
    c/d";
const GIT_START: &str = "umask 022; export GIT_CONFIG_GLOBAL=/dev/null; git init -q -b main; git \
    config user.name n; git config user.email e@example.com; mkdir src; echo 1 > src/f; echo 1 > \
    g; git add -A; git commit -q -m start; git branch other";
/// Makes the names of commits depend on their contents only.
const GIT_ENVIRONMENT: &str = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_DATE='1700000000 \
    +0000' GIT_COMMITTER_DATE='1700000000 +0000' GIT_EDITOR=true GIT_PAGER=cat";

/// A sequence of numbers that depends on its start only: SplitMix64.
pub(super) struct RandomNumbers(pub(super) u64);

impl RandomNumbers {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn choose<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.below(from.len() as u64)).expect("it is small")]
    }

    /// A path of one to three names.
    fn path(&mut self) -> String {
        let names = ["a", "b", "c", "d", "e", "f", "link", "empty", "new"];
        let count = 1 + self.below(3);
        (0..count).map(|_| self.choose(&names)).collect::<Vec<_>>().join("/")
    }
}

/// A script whose steps may fail: so they do, directly and as a transaction.
fn file_script(random: &mut RandomNumbers) -> String {
    let mut script = String::from("umask 022\n");
    for step in 0..STEPS {
        let (one, other) = (random.path(), random.path());
        let line = match random.below(14) {
            0 | 1 => format!("echo {step} > {one}"),
            2 => format!("echo {step} >> {one}"),
            3 | 4 => format!("mkdir -p {one}"),
            5 => format!("rm -rf {one}"),
            6 => format!("rm -f {one}"),
            7 | 8 => format!("mv -T {one} {other}"),
            9 => format!("ln -s {other} {one}"),
            10 => format!("ln {one} {other}"),
            11 => match random.choose(&["755", "700", "711", "644", "600"]) {
                // Without `x`, the user could not enter a directory.
                mode @ ("644" | "600") => format!("test -d {one} || chmod {mode} {one}"),
                mode => format!("chmod {mode} {one}"),
            },
            // The result of copying a directory into itself depends on the order of its entries.
            12 if !other.starts_with(&one) => format!("cp -r {one} {other}"),
            _ => format!("rmdir {one}"),
        };
        let _ = writeln!(script, "{line} 2>/dev/null");
    }
    script + "true"
}

fn git_script(random: &mut RandomNumbers) -> String {
    let mut script = format!("umask 022\n{GIT_ENVIRONMENT}\n");
    for step in 0..STEPS {
        let file = random.choose(&["g", "src/f", "src/n", "h"]);
        let branch = random.choose(&["main", "other", "third"]);
        let line = match random.below(14) {
            0..=2 => format!("mkdir -p src; echo {step} >> {file}"),
            3 | 4 => format!("git add -A; git commit -q -m {step}"),
            5 => format!("git checkout -q -B {branch}"),
            6 => format!("git checkout -q {branch}"),
            7 => format!("git merge -q --no-edit {branch} || git merge --abort"),
            8 => "git stash -q".to_owned(),
            9 => "git stash pop -q || git checkout -q -f".to_owned(),
            10 => format!("git rm -q -f {file}"),
            11 => format!("git rebase -q {branch} || git rebase --abort"),
            12 => format!("git tag -f t{step}; git gc -q"),
            _ => format!("git mv -f {file} moved"),
        };
        let _ = writeln!(script, "{{ {line}; }} >/dev/null 2>&1");
    }
    script + "true"
}

fn run_directly(root: &Path, script: &str) {
    let mut shell = Command::new("sh");
    let ran = shell.args(["-c", script]).current_dir(root).stdout(Stdio::null()).status();
    assert!(ran.expect("sh starts").success(), "{script}");
}

/// Everything that git says about a repository, and its working tree.
fn describe_repository(root: &Path) -> String {
    let ask = "export GIT_CONFIG_GLOBAL=/dev/null GIT_OPTIONAL_LOCKS=0
        git status --porcelain=v2 --branch; git for-each-ref; git stash list; git ls-files -s
        git fsck 2>&1 | grep -v dangling; git log --all --format='%H %T %s'";
    let said = Command::new("sh").args(["-c", ask]).current_dir(root).output().expect("sh starts");
    let tree = describe_tree(root);
    let outside = tree.iter().filter(|(path, _)| !path.starts_with(".git/"));
    format!(
        "{}{outside:#?}",
        String::from_utf8_lossy(&said.stdout),
        outside = outside.collect::<Vec<_>>()
    )
}

fn transact(test_host: &TestHost, script: &str) {
    let said = run_line(test_host, script);
    assert!(said.starts_with("ending 0 code 0:"), "{script}\n{said}");
    assert!(!said.contains("[sandbox]"), "{script}\n{said}");
}

fn check_file_scripts(seeds: impl Iterator<Item = u64>) {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    run_directly(root, START);
    let start = describe_tree(root);
    for seed in seeds {
        let script = file_script(&mut RandomNumbers(seed));
        let direct = tempfile::tempdir().expect("a directory");
        run_directly(direct.path(), &format!("{START}\n{script}"));
        transact(&test_host, &script);
        let changed = describe_tree(root);
        let different = differences(&describe_tree(direct.path()), &changed);
        assert!(different.is_empty(), "seed {seed}:\n{script}\n{different:#?}");
        if !test_host.history().list().expect("it is listed").is_empty() {
            undo(&test_host);
        }
        let different = differences(&start, &describe_tree(root));
        assert!(different.is_empty(), "seed {seed}, undone:\n{script}\n{different:#?}");
    }
}

#[test]
fn random_scripts_leave_the_same_tree_directly_and_as_a_transaction() {
    std::thread::scope(|scope| {
        for part in 0..2 {
            scope.spawn(move || check_file_scripts((part..FILE_SCRIPTS).step_by(2)));
        }
    });
}

#[test]
fn random_work_with_git_leaves_the_same_repository_directly_and_as_a_transaction() {
    for seed in 0..GIT_SCRIPTS {
        let test_host = private_host();
        let root = test_host.workspace_dir();
        let direct = tempfile::tempdir().expect("a directory");
        let start = format!("{GIT_ENVIRONMENT}; {GIT_START}");
        run_directly(root, &start);
        run_directly(direct.path(), &start);
        let before = describe_repository(root);
        assert_eq!(describe_repository(direct.path()), before);
        let script = git_script(&mut RandomNumbers(seed));
        run_directly(direct.path(), &script);
        transact(&test_host, &script);
        assert_eq!(
            describe_repository(direct.path()),
            describe_repository(root),
            "seed {seed}:\n{script}"
        );
        if !test_host.history().list().expect("it is listed").is_empty() {
            undo(&test_host);
        }
        assert_eq!(describe_repository(root), before, "seed {seed}, undone:\n{script}");
    }
}
