//! Tests of the checks on policy files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::policy::{Action, ApprovalMode, Verdict};

struct TestMachine {
    directory: tempfile::TempDir,
    owner: PolicyFileOwner,
}

impl TestMachine {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            owner: PolicyFileOwner::from_uid(rustix::process::geteuid().as_raw()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
        self.mode(name, 0o644)
    }

    fn mode(&self, name: &str, mode: u32) -> &Self {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn paths(&self) -> PolicyPaths {
        fs::create_dir_all(self.path("project")).unwrap();
        let project = Some(self.path("project").canonicalize().unwrap());
        PolicyPaths {
            system: (self.path("etc/policy.toml"), self.owner),
            user: self.path("user.toml"),
            project,
            trust: self.path("state/trust.json"),
        }
    }

    fn problem(&self) -> String {
        self.paths().load(None).expect_err("it is refused").to_string()
    }

    fn ls_verdict(&self) -> Verdict {
        self.paths()
            .load(None)
            .unwrap()
            .policy
            .verdict(
                ApprovalMode::Ask,
                crate::policy::ToolId::new("bash", ""),
                &Action::Command("ls"),
            )
            .verdict
    }
}

const ALLOW: &str = "[commands]\nallow = [\"*\"]";
const PROJECT_FILE: &str = "project/.cofferdam/policy.toml";

#[test]
fn missing_files_are_absent_sources() {
    let loaded = TestMachine::new().paths().load(None).unwrap();
    let states: Vec<_> = loaded
        .sources
        .iter()
        .map(|source| (source.level, source.state == SourceState::Absent))
        .collect();
    assert_eq!(
        states,
        [
            (PolicyLevel::System, true),
            (PolicyLevel::User, true),
            (PolicyLevel::User, false),
            (PolicyLevel::Project, true)
        ]
    );
}

#[test]
fn the_system_policy_must_be_writable_by_its_owner_only() {
    let machine = TestMachine::new();
    machine.write("etc/policy.toml", ALLOW).mode("etc", 0o755);
    assert_eq!(machine.ls_verdict(), Verdict::Allow);
    machine.mode("etc/policy.toml", 0o664);
    assert!(
        machine.problem().contains("other users can write the system policy here"),
        "{}",
        machine.problem()
    );
    machine.mode("etc/policy.toml", 0o646);
    assert!(
        machine.problem().contains("other users can write the system policy here"),
        "{}",
        machine.problem()
    );
    machine.mode("etc/policy.toml", 0o644).mode("etc", 0o777);
    assert!(
        machine.problem().contains("etc: other users can write the system policy here"),
        "{}",
        machine.problem()
    );
    machine.mode("etc", 0o755);
    let somebody_else = TestMachine { owner: PolicyFileOwner::from_uid(4321), ..machine };
    assert!(
        somebody_else.problem().contains("must belong to user 4321"),
        "{}",
        somebody_else.problem()
    );
}

#[test]
fn the_system_policy_must_not_be_a_link_or_below_one() {
    let machine = TestMachine::new();
    machine.write("elsewhere/policy.toml", ALLOW);
    fs::create_dir(machine.path("etc")).unwrap();
    symlink(machine.path("elsewhere/policy.toml"), machine.path("etc/policy.toml")).unwrap();
    assert!(machine.problem().contains("contains a symbolic link"), "{}", machine.problem());
    fs::remove_dir_all(machine.path("etc")).unwrap();
    symlink(machine.path("elsewhere"), machine.path("etc")).unwrap();
    assert!(machine.problem().contains("etc: cannot read this policy"), "{}", machine.problem());
}

#[test]
fn an_unreadable_policy_is_an_error() {
    let machine = TestMachine::new();
    fs::create_dir(machine.path("user.toml")).unwrap();
    assert!(
        machine.problem().contains("user.toml: this policy is not a file"),
        "{}",
        machine.problem()
    );
    fs::remove_dir(machine.path("user.toml")).unwrap();
    fs::write(machine.path("user.toml"), [0xff, 0xfe]).unwrap();
    assert!(machine.problem().contains("cannot read this policy"), "{}", machine.problem());
    machine.write("user.toml", &" ".repeat(1_100_000));
    assert!(machine.problem().contains("the maximum is 1048576"), "{}", machine.problem());
    machine.write("user.toml", "[commands]\nallow = [\"a; b\"]");
    assert!(
        machine.problem().contains("user.toml:2:10: `a; b` is not a command pattern"),
        "{}",
        machine.problem()
    );
    machine.write("user.toml", ALLOW).mode("user.toml", 0o646);
    assert!(machine.problem().contains("other users can write"), "{}", machine.problem());
    // Many users link such files from a directory of dotfiles.
    machine.write("dotfiles/policy.toml", ALLOW);
    fs::remove_file(machine.path("user.toml")).unwrap();
    symlink(machine.path("dotfiles/policy.toml"), machine.path("user.toml")).unwrap();
    assert_eq!(machine.ls_verdict(), Verdict::Allow);
}

#[test]
fn a_broken_link_to_a_policy_is_an_error() {
    let dangling: [(&str, &str); 6] = [
        ("nowhere.toml", "user.toml"),
        ("link.toml", "user.toml"),
        ("nowhere.toml", "etc/policy.toml"),
        ("nowhere", "etc"),
        ("nowhere.toml", PROJECT_FILE),
        ("nowhere", "project/.cofferdam"),
    ];
    for (target, link) in dangling {
        let machine = TestMachine::new();
        machine.paths();
        symlink(machine.path("nowhere.toml"), machine.path("link.toml")).unwrap();
        fs::create_dir_all(machine.path(link).parent().unwrap()).unwrap();
        symlink(machine.path(target), machine.path(link)).unwrap();
        assert!(
            machine.problem().contains("so nothing runs")
                || machine.problem().contains("contains a symbolic link"),
            "{link}: {}",
            machine.problem()
        );
    }
    let machine = TestMachine::new();
    symlink(machine.path("nowhere"), machine.path("config")).unwrap();
    let paths =
        PolicyPaths { user: machine.path("config/cofferdam/policy.toml"), ..machine.paths() };
    let problem = paths.load(None).expect_err("it is refused").to_string();
    assert!(problem.contains("config is a link to a missing directory"), "{problem}");
}

#[test]
fn a_fifo_in_place_of_a_policy_does_not_block() {
    let machine = TestMachine::new();
    fs::create_dir_all(machine.path("project/.cofferdam")).unwrap();
    for name in ["user.toml", PROJECT_FILE] {
        let status = std::process::Command::new("mkfifo").arg(machine.path(name)).status().unwrap();
        assert!(status.success());
        assert!(machine.problem().contains("is not a file"), "{}", machine.problem());
        fs::remove_file(machine.path(name)).unwrap();
    }
}

#[test]
fn a_project_policy_is_trusted_by_path_and_content() {
    let machine = TestMachine::new();
    machine.write(PROJECT_FILE, ALLOW);
    assert_eq!(machine.ls_verdict(), Verdict::Ask);
    let paths = machine.paths();
    let file = paths.project_file().unwrap().unwrap();
    PolicyTrustStore::update(&paths.trust, |trust| trust.add(&file.path, &file.digest)).unwrap();
    assert_eq!(machine.ls_verdict(), Verdict::Allow);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&paths.trust), mode(paths.trust.parent().unwrap())), (0o600, 0o700));
    // A different content is untrusted, and so is the same content at another path.
    machine.write(PROJECT_FILE, &format!("{ALLOW}\n"));
    assert_eq!(machine.ls_verdict(), Verdict::Ask);
    machine.write(PROJECT_FILE, ALLOW);
    fs::rename(machine.path("project"), machine.path("copy")).unwrap();
    let copy = PolicyPaths {
        project: Some(machine.path("copy").canonicalize().unwrap()),
        ..paths.clone()
    };
    assert_eq!(
        copy.load(None)
            .unwrap()
            .policy
            .verdict(
                ApprovalMode::Ask,
                crate::policy::ToolId::new("bash", ""),
                &Action::Command("ls")
            )
            .verdict,
        Verdict::Ask
    );
    fs::rename(machine.path("copy"), machine.path("project")).unwrap();
    assert_eq!(machine.ls_verdict(), Verdict::Allow);
    let revoke =
        || PolicyTrustStore::update(&paths.trust, |trust| trust.revoke(&file.path)).unwrap();
    assert!(revoke() && !revoke());
    assert_eq!(machine.ls_verdict(), Verdict::Ask);
}

#[test]
fn an_invalid_project_policy_is_an_error_and_an_untrusted_one_restricts() {
    let machine = TestMachine::new();
    machine.write(PROJECT_FILE, "[commands]\ndeny = [\"ls\"]");
    assert_eq!(machine.ls_verdict(), Verdict::Deny);
    machine.write(PROJECT_FILE, "[commands]\nallow = 1");
    assert!(machine.problem().contains("policy.toml:2:9:"), "{}", machine.problem());
}

#[test]
fn a_project_policy_must_not_be_a_link_or_below_one() {
    let machine = TestMachine::new();
    machine.write("outside/policy.toml", ALLOW);
    machine.paths();
    symlink(machine.path("outside"), machine.path("project/.cofferdam")).unwrap();
    assert!(machine.paths().load(None).is_err());
    fs::remove_file(machine.path("project/.cofferdam")).unwrap();
    fs::create_dir(machine.path("project/.cofferdam")).unwrap();
    symlink(machine.path("outside/policy.toml"), machine.path(PROJECT_FILE)).unwrap();
    assert!(machine.problem().contains("contains a symbolic link"), "{}", machine.problem());
}

#[test]
fn a_trust_record_that_others_can_access_is_refused() {
    let machine = TestMachine::new();
    machine.write(PROJECT_FILE, ALLOW);
    machine.write("state/trust.json", r#"{"version": 1, "trusted": {}}"#);
    assert!(machine.problem().contains("only you can read and write"), "{}", machine.problem());
    machine.mode("state/trust.json", 0o600);
    assert_eq!(machine.ls_verdict(), Verdict::Ask);
    machine
        .write("state/trust.json", r#"{"version": 2, "trusted": {}}"#)
        .mode("state/trust.json", 0o600);
    assert!(machine.problem().contains("format 2"), "{}", machine.problem());
}

#[test]
fn user_and_system_can_both_choose_a_profile() {
    let machine = TestMachine::new();
    machine.write("etc/policy.toml", "profile = \"locked-down\"").mode("etc", 0o755);
    machine.write("user.toml", "profile = \"develop\"");
    let names = |chosen| {
        let loaded = machine.paths().load(chosen).unwrap();
        loaded
            .sources
            .into_iter()
            .filter(|source| source.name.starts_with("profile"))
            .map(|source| (source.level, source.name))
            .collect::<Vec<_>>()
    };
    let system = (PolicyLevel::System, "profile locked-down".to_owned());
    assert_eq!(names(None), [system.clone(), (PolicyLevel::User, "profile develop".to_owned())]);
    assert_eq!(
        names(Some(PolicyProfile::ReadOnly)),
        [system, (PolicyLevel::User, "profile read-only".to_owned())]
    );
    // A chosen profile replaces the profile of the user policy, and no other rule.
    machine.write(
        "user.toml",
        "profile = \"locked-down\"\nmodes = [\"plan\", \"ask\", \"auto-edit\"]",
    );
    let forbids =
        |chosen, mode| machine.paths().load(chosen).unwrap().policy.mode_denied_by(mode).is_some();
    for chosen in [None, Some(PolicyProfile::Develop)] {
        assert!(
            forbids(chosen, ApprovalMode::Auto) && forbids(chosen, ApprovalMode::AutoEdit),
            "the system's profile holds: {chosen:?}"
        );
    }
    machine.write("etc/policy.toml", "");
    assert!(
        forbids(None, ApprovalMode::AutoEdit)
            && !forbids(Some(PolicyProfile::Develop), ApprovalMode::AutoEdit),
        "it is another profile"
    );
    assert!(forbids(Some(PolicyProfile::Develop), ApprovalMode::Auto), "the user's own rules hold");
}
