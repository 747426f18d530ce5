//! Toolchains and configured paths that lead through a directory that commands write. A command
//! cannot use a link there to open another directory to later commands.

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::program::TestHome;

use super::CONFINING_LEVELS;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

fn new_home(level: SandboxLevel, paths: &str) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    let levels = format!("minimum = \"{level}\"\nat_most = \"{level}\"");
    let config = format!("[commands]\n{levels}\n{}\n", paths.replace("~", &home_text(&home)));
    home.write_file("config/cofferdam/config.toml", config);
    home.write_file("private/notes/k", "TOPSECRET");
    home
}

fn home_text(home: &TestHome) -> String {
    home.path().canonicalize().expect("it exists").display().to_string()
}

fn run(home: &TestHome, variables: &[(&str, &str)], line: &str) -> String {
    let at = home_text(home);
    let line = line.replace("~", &at);
    let input = serde_json::json!({"command": line}).to_string();
    let mut command = home.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
    for (name, value) in variables {
        command.env(name, value.replace("~", &at));
    }
    let ran = home.start(command).wait_for_exit();
    ran.stdout + &ran.stderr
}

#[test]
fn a_link_in_place_of_a_toolchain_in_the_workspace_opens_nothing() {
    let bin = "~/workspace/tool/bin";
    let path = format!("{bin}:/usr/bin:/bin");
    for level in CONFINING_LEVELS {
        for variables in [
            [("PATH", path.as_str())],
            [("VIRTUAL_ENV", bin)],
            [("GOROOT", bin)],
            [("GOPATH", bin)],
        ] {
            let home = new_home(level, "").with_file("tool/bin/x", "");
            let said = run(&home, &variables, "cat ~/private/notes/k");
            assert!(!said.contains("TOPSECRET"), "{level} {variables:?}: {said}");
            run(&home, &variables, "rm -r tool/bin && ln -s ~/private/notes tool/bin && echo done");
            let said = run(&home, &variables, "cat ~/private/notes/k; cat tool/bin/k; echo ran");
            assert!(!said.contains("TOPSECRET"), "{level} {variables:?}: {said}");
            assert!(said.contains("ran"), "{level} {variables:?}: {said}");
        }
    }
}

#[test]
fn a_link_in_a_directory_that_commands_write_opens_nothing_and_later_commands_run() {
    for level in CONFINING_LEVELS {
        for paths in ["write = [\"~/w\"]\nread = [\"~/w/r\"]", "write = [\"~/w\", \"~/w/r\"]"] {
            let home = new_home(level, paths);
            home.write_file("w/r/x", "");
            let said = run(&home, &[], "cd ~/w && mv r r2 && ln -s ~/private/notes r && echo done");
            assert!(said.contains("done"), "{level} {paths}: {said}");
            let line = "cat ~/private/notes/k; echo x > ~/private/notes/new; echo ran";
            let said = run(&home, &[], line);
            assert!(!said.contains("TOPSECRET") && said.contains("ran"), "{level} {paths}: {said}");
            assert!(!home.path().join("private/notes/new").exists(), "{level} {paths}");
        }
    }
}
