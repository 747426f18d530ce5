//! Tests with workspaces before and after a change.

use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;
use crate::git::UserSettings;

struct TestPlace {
    folder: tempfile::TempDir,
}

impl TestPlace {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there")
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("it is made");
        fs::write(path, text).expect("it is written");
        self
    }

    fn repository(&self, path: &str) -> &Self {
        for name in ["HEAD", "objects/x", "refs/x", "config", "hooks/x"] {
            self.write(&format!("{path}/{name}"), "");
        }
        self
    }

    fn git(&self) -> GitNamedPaths {
        GitNamedPaths::new(&self.root(), &UserSettings::default()).expect("they are read")
    }

    fn before(&self) -> (ProtectedSnapshot, ProtectedPaths) {
        ProtectedSnapshot::capture_before(
            &self.root(),
            &ProtectedPaths::default(),
            self.git(),
            true,
            &mut || true,
        )
        .expect("it can be looked at")
    }

    fn after(
        &self,
        (before, protected): &(ProtectedSnapshot, ProtectedPaths),
    ) -> ProtectedSnapshot {
        ProtectedSnapshot::capture_after(
            &self.root(),
            protected,
            true,
            before,
            (&OpenedDirectories::default(), None),
            Instant::now() + Duration::from_secs(60),
        )
        .expect("it can be looked at")
    }
}

/// Lists the entries with the first letters of their protection.
fn table(snapshot: &ProtectedSnapshot) -> Vec<String> {
    snapshot
        .entries
        .iter()
        .map(|(path, entry)| {
            format!("{} {}", &format!("{:?}", entry.protection)[..1], path.display())
        })
        .collect()
}

#[test]
fn a_repository_is_one_whatever_its_name() {
    let place = TestPlace::new();
    place.repository("docs").write("docs/readme", "");
    assert_eq!(
        table(&place.before().0),
        ["P docs", "R docs/config", "R docs/hooks", "R docs/hooks/x"]
    );
}

#[test]
fn what_settings_and_links_lead_to_is_protected_like_them() {
    let place = TestPlace::new();
    place
        .write(".git/config", "[core]\n\thooksPath = .husky/_\n")
        .write(".husky/_/pre-commit", "")
        .write(".husky/notes", "");
    place.write("ai/vscode/tasks.json", "{}").write("ai/notes", "").write("config/secrets", "");
    symlink("ai/vscode", place.root().join(".vscode")).expect("it is made");
    symlink("config/secrets", place.root().join(".env")).expect("it is made");
    let protected = table(&place.before().0);
    for path in [
        "R .husky/_",
        "R .husky/_/pre-commit",
        "R ai/vscode",
        "R ai/vscode/tasks.json",
        "H config/secrets",
    ] {
        assert!(protected.iter().any(|line| line == path), "{path}: {protected:?}");
    }
    assert!(!protected.iter().any(|line| line.ends_with("notes")), "{protected:?}");
}

#[test]
fn a_worktree_or_a_submodule_may_have_the_name_of_a_store() {
    let place = TestPlace::new();
    for name in ["lfs", "logs", "refs", "objects"] {
        place
            .write(&format!(".git/worktrees/{name}/commondir"), "../..")
            .write(&format!(".git/modules/{name}/config"), "");
    }
    place.write(".git/HEAD", "").write(".git/logs/HEAD", "").write(".git/objects/config", "");
    let known = place.before();
    assert_eq!(table(&known.0), table(&place.after(&known)));
    assert_eq!(
        known
            .0
            .entries
            .values()
            .filter(|entry| entry.protection == PathProtection::ReadOnly)
            .count(),
        8
    );
}

#[test]
fn packages_hold_nobodys_secrets_but_may_hold_repositories() {
    let place = TestPlace::new();
    place
        .write("node_modules/a/.npmrc", "")
        .write("node_modules/a/test.key", "")
        .write("node_modules/b/.git/config", "");
    assert_eq!(table(&place.before().0), ["P node_modules/b/.git", "R node_modules/b/.git/config"]);
    let policy =
        cofferdam_policy::WorkspacePath::parse("node_modules/a/.npmrc", None).expect("a path");
    let rules = ProtectedPaths::default().with_own_path(&policy);
    let (all, _) =
        ProtectedSnapshot::capture_before(&place.root(), &rules, place.git(), true, &mut || true)
            .expect("it can be looked at");
    assert!(
        table(&all).contains(&"H node_modules/a/.npmrc".to_owned()),
        "only the built-in list gives way"
    );
}

#[test]
fn files_beyond_what_is_kept_are_told_apart_afterwards() {
    let place = TestPlace::new();
    place.write(".git/hooks/pre-commit", "mine").write(".env", "mine");
    let known = place.before();
    let large = fs::File::create(place.root().join("x.pem")).expect("it is made");
    large.set_len(MAX_KEPT_BYTES + 1).expect("it is grown");
    place.write(".git/hooks/pre-commit", "evil");
    let after = place.after(&known);
    let is_as = |path: &str| {
        after.entries[Path::new(path)].is_unchanged_from(&known.0.entries[Path::new(path)])
    };
    assert!(is_as(".env") && !is_as(".git/hooks/pre-commit"));
    let refused = ProtectedSnapshot::capture_before(
        &place.root(),
        &ProtectedPaths::default(),
        place.git(),
        true,
        &mut || true,
    );
    let refused = refused.expect_err("there is too much content");
    assert!(matches!(refused, ProtectionError::TooMuchContent), "{refused}");
    assert!(refused.to_string().contains("64 MiB"), "{refused}");
}

#[test]
fn a_folder_that_was_moved_is_found() {
    let place = TestPlace::new();
    place.write(".git/config", "").write("src/a", "");
    let known = place.before();
    fs::rename(place.root().join(".git"), place.root().join("src/elsewhere")).expect("it moves");
    assert_eq!(
        place.after(&known).moved,
        [(PathBuf::from(".git"), PathBuf::from("src/elsewhere"))]
    );
}

#[test]
fn a_new_folder_with_the_number_of_a_removed_one_is_a_new_folder() {
    let place = TestPlace::new();
    place.write(".git/config", "");
    let known = place.before();
    fs::remove_dir_all(place.root().join(".git")).expect("it is removed");
    for n in 0..50 {
        fs::create_dir(place.root().join(format!("new{n}"))).expect("it is made");
    }
    assert_eq!(place.after(&known).moved, []);
}

#[test]
fn a_walk_that_nobody_waits_for_ends() {
    let place = TestPlace::new();
    for n in 0..5000 {
        fs::write(place.root().join(n.to_string()), "").expect("it is written");
    }
    let ended = ProtectedSnapshot::capture_before(
        &place.root(),
        &ProtectedPaths::default(),
        place.git(),
        true,
        &mut || false,
    );
    assert!(matches!(ended, Err(ProtectionError::Cancelled)));
}
