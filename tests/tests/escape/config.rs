//! What the configuration says holds, and what is said of it is true.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cofferdam::policy::{CommandRules, MoreProtected, SandboxLevel};
use cofferdam_tests::program::Home;

use super::{LEVELS, house_with, rules, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

fn home(config: &str) -> Home {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    let cache = CACHE.get_or_init(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled-tools");
        Home::prepare_cache(PROGRAM, &cache);
        cache
    });
    let home = Home::new(PROGRAM, cache);
    home.write("config/cofferdam/config.toml", config);
    home
}

#[test]
fn doctor_tells_the_level_that_was_measured_and_what_is_open() {
    let said = home("").run(&["doctor"]).stdout;
    assert!(said.contains("in the sandbox `full`, no network"), "{said}");
    let said = home("[commands]\nat_most = \"kernel\"\nnetwork = true\n").run(&["doctor"]).stdout;
    assert!(said.contains("in the sandbox `kernel`, WITH the network"), "{said}");
    assert!(said.contains("open: reading .env files"), "{said}");
    let said = home("[commands]\nsandbox = \"none\"\nat_most = \"none\"\n").run(&["doctor"]).stdout;
    assert!(said.contains("WITHOUT a sandbox, with your rights"), "{said}");
}

#[test]
fn less_than_the_minimum_is_refused_with_what_would_help() {
    let mut rules = rules(SandboxLevel::Kernel);
    rules.minimum = SandboxLevel::Full;
    let house = house_with(rules);
    let said = run(&house, "touch ran");
    assert!(said.contains("denied no-sandbox") && said.contains("level `full` or better"), "{said}");
    assert!(!house.folder().join("ran").exists());
}

#[test]
fn paths_that_the_user_adds_can_be_read_or_written() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("data"), "outside-data\n").expect("it is written");
    let data = outside.path().to_owned();
    for level in LEVELS {
        let line = format!("cat {0}/data; echo x > {0}/new; true", data.display());
        let read = house_with(CommandRules { read: vec![data.clone()], ..rules(level) });
        assert!(run(&read, &line).contains("outside-data"), "{level}");
        assert!(!data.join("new").exists(), "{level}: what may be read was written");
        let write = house_with(CommandRules { write: vec![data.clone()], ..rules(level) });
        assert!(run(&write, &line).contains("outside-data"), "{level}");
        assert!(data.join("new").exists(), "{level}");
        std::fs::remove_file(data.join("new")).expect("it is removed");
    }
}

#[test]
fn the_network_is_there_when_it_is_granted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("it is bound");
    let port = listener.local_addr().expect("it is bound").port();
    let line = format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2); print(\"connected\")' 2>&1");
    for level in LEVELS {
        let house = house_with(CommandRules { network: true, ..rules(level) });
        let said = run(&house, &line);
        assert!(said.contains("connected"), "{level}: {said}");
    }
}

#[test]
fn more_can_be_protected_and_a_secret_can_be_shown() {
    let list = |text: &str| vec![text.to_owned()];
    let protected = MoreProtected { read_only: list("infra"), hidden: list("private.txt"), shown: list("test.key") };
    for level in LEVELS {
        let house = house_with(CommandRules { protected: protected.clone(), ..rules(level) });
        house.write("infra/main.tf", "as it was\n");
        house.write("private.txt", "private-text\n");
        house.write("test.key", "test-key\n");
        let said = run(&house, "echo x > infra/main.tf; cat private.txt test.key; true");
        assert!(said.contains("test-key"), "{level}: {said}");
        assert_eq!(said.contains("private-text"), level == SandboxLevel::Kernel, "{level}: {said}");
        assert_eq!(std::fs::read_to_string(house.folder().join("infra/main.tf")).expect("it is there"), "as it was\n", "{level}");
    }
}

#[test]
fn what_was_set_aside_is_said_and_kept() {
    let home = home("");
    let ran = home.run(&["tools", "call", "bash", r#"{"command":"mkdir .idea; echo evil > .idea/x"}"#, "--mode", "auto"]);
    assert!(ran.stdout.contains("[sandbox] .idea was made, which is not allowed; it is now "), "{ran:?}");
    assert!(!home.has(".idea"));
    let kept = std::fs::read_dir(home.path().join("state/cofferdam/set-aside")).expect("it is there").count();
    assert_eq!(kept, 1);
}

#[test]
fn a_command_starts_in_a_folder_of_the_workspace() {
    for level in LEVELS {
        let guest = cofferdam_tests::guests::Guest::named("command")
            .with("{{directory}}", "sub")
            .with("{{timeout}}", "10")
            .asking(&[cofferdam::policy::Capability::RunCommands]);
        let commands = std::sync::Arc::new(cofferdam_tests::guests::commands(rules(level)));
        let house = cofferdam_tests::guests::Plan::default().guest(&guest).commands(commands).build();
        house.write("sub/file", "");
        let said = house.answers("command", r#"{"line":"pwd; ls"}"#);
        assert!(said.contains("/sub") && said.contains("file"), "{level}: {said}");
    }
}
