//! What the configuration says holds, and what is said of it is true.

use cofferdam::policy::{
    CommandNetwork, CommandRules, Policy, PolicyLayer, PolicyLevel, SandboxLevel,
};
use cofferdam_tests::program::TestHome;

use super::{CONFINING_LEVELS, host_builder, host_with_rules, rules_for_level, run_line};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

fn new_home(config: &str) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write_file("config/cofferdam/config.toml", config);
    home
}

#[test]
fn doctor_tells_the_level_that_was_measured_and_what_is_open() {
    let said = new_home("").run(&["doctor"]).stdout;
    assert!(said.contains("in the sandbox `full`, no network"), "{said}");
    let said =
        new_home("[commands]\nat_most = \"kernel\"\nnetwork = true\n").run(&["doctor"]).stdout;
    assert!(said.contains("in the sandbox `kernel`, WITH the network"), "{said}");
    assert!(said.contains("not blocked: reading .env files"), "{said}");
    let said =
        new_home("[commands]\nminimum = \"none\"\nat_most = \"none\"\n").run(&["doctor"]).stdout;
    assert!(said.contains("WITHOUT a sandbox, with your rights"), "{said}");
}

#[test]
fn less_than_the_minimum_is_refused_with_what_would_help() {
    let mut rules = rules_for_level(SandboxLevel::Kernel);
    rules.minimum = SandboxLevel::Full;
    let test_host = host_with_rules(rules);
    let said = run_line(&test_host, "touch ran");
    assert!(
        said.contains("denied no-sandbox") && said.contains("level `full` or better"),
        "{said}"
    );
    assert!(!test_host.workspace_dir().join("ran").exists());
}

#[test]
fn r036_less_than_a_policy_demands_is_refused_with_the_rule_its_file_and_its_line() {
    let home = new_home("[commands]\nat_most = \"kernel\"\n");
    let call = |home: &TestHome| {
        home.run(&["tools", "call", "bash", r#"{"command":"touch ran"}"#, "--mode", "auto"])
    };
    let explain = |home: &TestHome| {
        home.run(&["policy", "explain", "bash", "--command", "touch ran", "--mode", "auto"])
    };
    home.write_file("config/cofferdam/policy.toml", "[commands]\n\nminimum = \"kernel\"\n");
    assert_eq!((call(&home).exit_code, explain(&home).exit_code), (0, 0), "{:?}", call(&home));
    std::fs::remove_file(home.workspace().join("ran")).expect("it was made");
    // The project's file is not trusted, and demands more all the same.
    let home = home.with_file(".cofferdam/policy.toml", "[commands]\n\nminimum = \"full\"\n");
    for ran in [call(&home), explain(&home)] {
        let said = ran.stdout + &ran.stderr;
        assert!(
            said.contains("(`minimum = \"full\"` at ")
                && said.contains(".cofferdam/policy.toml:3:11"),
            "{said}"
        );
        assert!(
            said.contains("`commands.at_most` in the configuration does not allow it"),
            "{said}"
        );
    }
    assert!(!home.has_file("ran"));
    let shown = home.run(&["policy", "show"]).stdout;
    assert!(
        shown.contains("Minimum sandbox level of commands")
            && shown.contains("full  (")
            && shown.contains("kernel  ("),
        "{shown}"
    );
}

#[test]
fn paths_that_the_user_adds_can_be_read_or_written() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("data"), "outside-data\n").expect("it is written");
    let data = outside.path().to_owned();
    for level in CONFINING_LEVELS {
        let line = format!("cat {0}/data; echo x > {0}/new; true", data.display());
        let read =
            host_with_rules(CommandRules { read: vec![data.clone()], ..rules_for_level(level) });
        assert!(run_line(&read, &line).contains("outside-data"), "{level}");
        assert!(!data.join("new").exists(), "{level}: what may be read was written");
        let write =
            host_with_rules(CommandRules { write: vec![data.clone()], ..rules_for_level(level) });
        assert!(run_line(&write, &line).contains("outside-data"), "{level}");
        assert!(data.join("new").exists(), "{level}");
        std::fs::remove_file(data.join("new")).expect("it is removed");
    }
}

#[test]
fn the_network_is_there_when_it_is_granted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("it is bound");
    let port = listener.local_addr().expect("it is bound").port();
    let line = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2); \
            print(\"connected\")' 2>&1"
    );
    for level in CONFINING_LEVELS {
        let test_host = host_with_rules(CommandRules {
            network: CommandNetwork::All,
            ..rules_for_level(level)
        });
        let said = run_line(&test_host, &line);
        assert!(said.contains("connected"), "{level}: {said}");
    }
}

#[test]
fn what_a_policy_protects_and_shows_is_so_for_commands_too() {
    let protected = || {
        let text = "[protected]\nread_only = [\"infra\"]\nhidden = [\"private.txt\"]\nshown = \
            [\"test.key\"]";
        let mut policy = Policy::default();
        policy.add_layer(
            PolicyLayer::parse(PolicyLevel::User, "policy.toml", text).expect("it is a policy"),
        );
        policy.protected_paths()
    };
    for level in CONFINING_LEVELS {
        let test_host =
            host_builder(rules_for_level(level)).with_protected_paths(protected()).build();
        test_host.write_file("infra/main.tf", "as it was\n");
        test_host.write_file("private.txt", "private-text\n");
        test_host.write_file("test.key", "test-key\n");
        let said = run_line(&test_host, "echo x > infra/main.tf; cat private.txt test.key; true");
        assert!(said.contains("test-key"), "{level}: {said}");
        assert_eq!(said.contains("private-text"), level == SandboxLevel::Kernel, "{level}: {said}");
        assert_eq!(
            std::fs::read_to_string(test_host.workspace_dir().join("infra/main.tf"))
                .expect("it is there"),
            "as it was\n",
            "{level}"
        );
    }
}

#[test]
fn the_policy_file_of_the_user_holds_for_commands() {
    let home = new_home("");
    home.write_file(
        "config/cofferdam/policy.toml",
        "[protected]\nread_only = [\"infra\"]\nhidden = [\"*.sqlite\"]\n[read]\ndeny = \
            [\"customers/**\"]\n",
    );
    let home = home
        .with_file("infra/main.tf", "as it was\n")
        .with_file("a.sqlite", "sqlite-text\n")
        .with_file("customers/list", "customer-text\n");
    let line = "cat a.sqlite customers/list; echo x > infra/main.tf; echo done";
    let input = serde_json::json!({"command": line}).to_string();
    let ran = home.run(&["tools", "call", "bash", &input, "--mode", "auto"]);
    assert!(ran.stdout.contains("done") && !ran.stdout.contains("-text"), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(home.workspace().join("infra/main.tf")).expect("it is there"),
        "as it was\n"
    );
}

#[test]
fn what_was_set_aside_is_said_and_kept() {
    let home = new_home("");
    let ran = home.run(&[
        "tools",
        "call",
        "bash",
        r#"{"command":"mkdir .idea; echo evil > .idea/x"}"#,
        "--mode",
        "auto",
    ]);
    assert!(
        ran.stdout.contains("[sandbox] .idea was created, which is not allowed; it was moved to "),
        "{ran:?}"
    );
    assert!(!home.has_file(".idea"));
    let kept = std::fs::read_dir(home.path().join("state/cofferdam/set-aside"))
        .expect("it is there")
        .flatten();
    assert_eq!(
        kept.filter(|entry| entry.file_name().to_string_lossy().starts_with("set-aside-")).count(),
        1
    );
}

#[test]
fn a_command_starts_in_a_folder_of_the_workspace() {
    for level in CONFINING_LEVELS {
        let guest = cofferdam_tests::guests::TestGuest::from_file("command")
            .with_replacement("{{directory}}", "sub")
            .with_replacement("{{timeout}}", "10")
            .with_requested(&[cofferdam::policy::Capability::RunCommands]);
        let commands =
            std::sync::Arc::new(cofferdam_tests::guests::commands(rules_for_level(level)));
        let test_host = cofferdam_tests::guests::TestHostBuilder::default()
            .with_guest(&guest)
            .with_commands(commands)
            .build();
        test_host.write_file("sub/file", "");
        let said = test_host.call_ok("command", r#"{"line":"pwd; ls"}"#);
        assert!(said.contains("/sub") && said.contains("file"), "{level}: {said}");
    }
}
