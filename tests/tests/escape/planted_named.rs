//! Files that settings of git name: nothing that a command puts in their place runs when the user's
//! own git comes by.

use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::program::TestHome;

use super::CONFINING_LEVELS;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// Makes a program that leaves a trace.
const PLANT: &str = "evil() { mkdir -p \"$(dirname \"$1\")\"; printf '#!/bin/sh\\ntouch \
    RAN\\nexit 1\\n' > \"$1\"; chmod +x \"$1\"; }\n";
/// A repository with a commit.
const SETUP: &str = "repository() { git init -q \"$@\" . && git config user.name A && git config \
    user.email a@example.org && commit; }\n\
    commit() { git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m x; }\n";

struct Plant {
    name: &'static str,
    /// What the user did in the workspace before. `OUT` is a directory outside of it, and the home
    /// is `HOME`.
    setup: &'static str,
    command: &'static str,
    /// What the user does afterwards.
    act: &'static str,
}

const fn plant(
    name: &'static str,
    setup: &'static str,
    command: &'static str,
    act: &'static str,
) -> Plant {
    Plant { name, setup, command, act }
}

/// The user's git writes the last message anew.
const AMEND: &str =
    "git -c user.name=A -c user.email=a@example.org commit -q --amend --no-edit; git status";
const AMEND_NEW: &str = "cd new; git -c user.name=A -c user.email=a@example.org commit -q --amend \
    --no-edit; git status";

const PLANTS: &[Plant] = &[
    plant(
        "hooks of a linked worktree",
        "repository; git config core.hooksPath tools/hooks; git worktree add -q wt",
        "evil wt/tools/hooks/pre-commit",
        "cd wt; commit",
    ),
    plant(
        "hooks of a workspace that is a linked worktree",
        "mkdir OUT/main; w=$PWD; cd OUT/main; repository; git config core.hooksPath tools/hooks; \
            git worktree add -q $w",
        "evil tools/hooks/pre-commit",
        "commit",
    ),
    plant(
        "hooks of a worktree with a separate repository",
        "mkdir sub; cd sub; repository --separate-git-dir OUT/separate; git config core.hooksPath \
            tools/hooks",
        "evil sub/tools/hooks/pre-commit",
        "cd sub; commit",
    ),
    plant(
        "hooks of a submodule",
        "repository; w=$PWD; mkdir OUT/lib; cd OUT/lib; repository; cd $w; git -c \
            protocol.file.allow=always submodule --quiet add OUT/lib sub; \
         git -C sub config core.hooksPath tools/hooks",
        "evil sub/tools/hooks/pre-commit",
        "cd sub; commit",
    ),
    plant(
        "hooks at the top",
        "repository; git config core.hooksPath $PWD",
        "evil pre-commit",
        "commit",
    ),
    plant(
        "hooks that settings of the user name",
        "git config --global core.hooksPath tools/hooks; repository",
        "evil tools/hooks/pre-commit",
        "commit",
    ),
    plant(
        "hooks of a new repository that settings of the user name",
        "git config --global core.hooksPath tools/hooks",
        "git init -q new; evil new/tools/hooks/pre-commit",
        "cd new; commit",
    ),
    plant(
        "hooks in a repository that is renamed",
        "git config --global core.hooksPath tools/hooks; mkdir sub; cd sub; repository",
        "mv sub new; evil new/tools/hooks/pre-commit",
        "cd new; commit",
    ),
    plant(
        "settings of the user that are a link",
        "repository; touch gitconfig; ln -sf $PWD/gitconfig $HOME/.gitconfig",
        "printf '[core]\\nfsmonitor=\"touch RAN; false\"\\n' > gitconfig",
        "git status",
    ),
    plant(
        "a directory of settings of the user that is a link",
        "repository; mkdir conf; d=${XDG_CONFIG_HOME:-$HOME/.config}; mkdir -p $d; ln -s $PWD/conf \
            $d/git",
        "printf '[core]\\nfsmonitor=\"touch RAN; false\"\\n' > conf/config",
        "git status",
    ),
    plant(
        "a hook of the user that is a link",
        "repository; mkdir OUT/gh; ln -s $PWD/gh/pc OUT/gh/pre-commit; git config --global \
            core.hooksPath OUT/gh",
        "evil gh/pc",
        "commit",
    ),
    plant(
        "a hook of a repository around the workspace that is a link",
        "w=$PWD; cd ..; repository; ln -s $w/hk/pc .git/hooks/pre-commit",
        "evil hk/pc",
        "cd ..; commit",
    ),
    plant(
        "hooks by an absolute path of the user",
        "git config --global core.hooksPath $PWD/shared; repository",
        "evil shared/pre-commit",
        "commit",
    ),
    plant(
        "settings that those of the user include",
        "git config --global include.path $PWD/shared.cfg; repository",
        "printf '[core]\\nfsmonitor=\"touch RAN; false\"\\n' > shared.cfg",
        "git status",
    ),
    plant(
        "hooks that a repository around the workspace names",
        "w=$PWD; cd ..; repository; git config core.hooksPath ${w##*/}/hooks",
        "evil hooks/pre-commit",
        "cd ..; commit",
    ),
    plant(
        "a monitor of files",
        "repository; git config core.fsmonitor ./monitor",
        "evil monitor",
        "git status",
    ),
    plant(
        "a filter",
        "repository; echo '* filter=x' > .git/info/attributes; git config filter.x.clean 'sh \
            tools/clean %f'",
        "evil tools/clean",
        "echo x > file; git add file",
    ),
    plant(
        "an alias",
        "repository; git config alias.up '!$(git rev-parse --show-toplevel)/tools/up now'",
        "evil tools/up",
        "git up",
    ),
    plant(
        "an editor that is replaced",
        "repository; echo true > edit; git config core.editor 'sh edit'",
        "evil edit",
        "git commit --allow-empty",
    ),
    plant(
        "a comparison in a linked worktree",
        "repository; echo a > file; git add file; commit; git config diff.external tools/compare; \
            git worktree add -q wt",
        "evil wt/tools/compare",
        "cd wt; echo b > file; git diff",
    ),
    plant(
        "settings that included settings include",
        "repository; git config include.path ../a.cfg; printf '[includeIf \
            \"onbranch:none\"]\\npath=c.cfg\\n[include]\\npath=sub/b.cfg\\n' > a.cfg",
        "mkdir sub; printf '[core]\\nfsmonitor=\"touch RAN; false\"\\n' > sub/b.cfg",
        "git status",
    ),
    plant(
        "hooks that large settings name",
        "repository; head -c 3000000 /dev/zero | tr '\\0' '#' >> .git/config; printf \
            '\\n[core]\\nhooksPath=tools/hooks\\n' >> .git/config",
        "evil tools/hooks/pre-commit",
        "commit",
    ),
    plant(
        "attributes behind a link",
        "repository; rm -rf .git/info; mkdir e; ln -s ../e .git/info; git config filter.x.clean \
            'touch RAN; cat'",
        "echo '* filter=x' > e/attributes",
        "echo x > file; git add file",
    ),
    plant(
        "attributes behind a new link",
        "repository; git config filter.x.clean 'touch RAN; cat'",
        "mkdir e; echo '* filter=x' > e/attributes; rm -rf .git/info; ln -s ../e .git/info",
        "echo x > file; git add file",
    ),
    plant(
        "a link on the way to hooks, changed",
        "repository; mkdir -p s/hooks; ln -s s l; git config core.hooksPath l/hooks",
        "evil t/hooks/pre-commit; rm l; ln -s t l",
        "commit",
    ),
    plant(
        "a link on the way to included settings, changed",
        "repository; mkdir s; touch s/cfg; ln -s s m; ln -s m l; git config include.path ../l/cfg",
        "mkdir t; printf '[core]\\nfsmonitor=\"touch RAN; false\"\\n' > t/cfg; rm m; ln -s t m",
        "git status",
    ),
    plant(
        "a directory on the way to hooks, made a link",
        "repository; mkdir -p tools/hooks; git config core.hooksPath tools/hooks",
        "evil t/hooks/pre-commit; rm -r tools; ln -s t tools",
        "commit",
    ),
    plant(
        "a link in place of the last message",
        "repository",
        "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = \
            \"touch RAN; false\"\\n' > m; echo b > b; git add b; \
         git -c user.name=A -c user.email=a@example.org commit -qF m --cleanup=verbatim; rm m; ln \
         -sf config .git/COMMIT_EDITMSG",
        AMEND,
    ),
    plant(
        "another name of the settings in place of the last message",
        "repository",
        "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = \
            \"touch RAN; false\"\\n' > m; echo b > b; git add b; \
         git -c user.name=A -c user.email=a@example.org commit -qF m --cleanup=verbatim; rm m; ln \
         -f .git/config .git/COMMIT_EDITMSG",
        AMEND,
    ),
    plant(
        "a link in place of the last message of a new repository",
        "true",
        "git init -q new; cd new; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = \
            false\\n\\tfsmonitor = \"touch RAN; false\"\\n' > m; echo b > b; git add b; \
         git -c user.name=A -c user.email=a@example.org commit -qF m --cleanup=verbatim; rm m; ln \
         -sf config .git/COMMIT_EDITMSG",
        AMEND_NEW,
    ),
];

fn home(level: SandboxLevel) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write_file(
        "config/cofferdam/config.toml",
        format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\n"),
    );
    home
}

fn call(home: &TestHome, line: &str) -> String {
    let input = serde_json::json!({"command": line}).to_string();
    let ran = home.run(&["tools", "call", "bash", &input, "--mode", "auto"]);
    format!("{}{}", ran.stdout, ran.stderr)
}

fn shell(home: &TestHome, line: &str) -> bool {
    let mut command = Command::new("sh");
    home.configure(&mut command);
    command
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("sh starts")
        .success()
}

/// Whether something ran when the user's git came by, and what the command said.
fn runs(level: SandboxLevel, plant: &Plant) -> (bool, String) {
    let home = home(level);
    let outside = tempfile::tempdir().expect("a directory");
    let ran = outside.path().join("ran");
    let fill = |line: String| {
        line.replace("RAN", &ran.display().to_string())
            .replace("OUT", &outside.path().display().to_string())
    };
    let is_set_up = shell(&home, &fill(format!("set -e\n{SETUP}{}", plant.setup)));
    assert!(is_set_up && !ran.exists(), "{}", plant.name);
    let said = call(&home, &fill(format!("{PLANT}{}", plant.command)));
    shell(&home, &fill(format!("{SETUP}{}", plant.act)));
    (Path::exists(&ran), said)
}

#[test]
fn unconfined_plants_run_through_settings() {
    let idle: Vec<_> = PLANTS
        .iter()
        .map(|plant| (plant.name, runs(SandboxLevel::None, plant)))
        .filter(|(_, (ran, _))| !ran)
        .collect();
    assert!(idle.is_empty(), "these show nothing: {idle:#?}");
}

#[test]
fn settings_name_no_file_that_a_command_planted() {
    let all =
        CONFINING_LEVELS.iter().flat_map(|level| PLANTS.iter().map(move |plant| (level, plant)));
    let survived: Vec<String> = all
        .filter_map(|(level, plant)| {
            let (ran, said) = runs(*level, plant);
            ran.then(|| {
                format!(
                    "`{level}`: {}\n    said: {}",
                    plant.name,
                    said.chars().take(600).collect::<String>()
                )
            })
        })
        .collect();
    assert!(survived.is_empty(), "{}", survived.join("\n"));
}

#[test]
fn settings_that_cannot_be_read_refuse_commands_with_their_name() {
    for level in CONFINING_LEVELS {
        let home = home(level);
        let setup = "git init -q; head -c 17000000 /dev/zero | tr '\\0' '#' >> .git/config";
        assert!(shell(&home, setup));
        let said = call(&home, "touch made");
        assert!(
            said.contains(".git/config: it is larger than 16 MiB")
                && said.contains("hint: repair or remove"),
            "{level}: {said}"
        );
        assert!(!home.has_file("made"), "{level}");
        // git refuses it by itself.
        assert!(shell(&home, "printf '[core\\n' > .git/config"));
        let said = call(&home, "touch made");
        assert!(home.has_file("made"), "{level}: {said}");
    }
}

#[test]
fn aliases_and_tools_without_paths_protect_nothing() {
    let settings = "git config alias.lint '!npm run lint && eslint src/ tests/'; git config \
        core.pager 'less -R'; \
        git config alias.unlock '!rm -f .git/index.lock'; git config alias.show-main 'log -p \
        src/main.rs'; \
        git config credential.helper store; git config core.fsmonitor false";
    for level in CONFINING_LEVELS {
        let home = home(level);
        let setup = format!(
            "{SETUP}set -e\nrepository; mkdir src tests lint; touch src/main.rs README.md; \
                {settings}"
        );
        assert!(shell(&home, &setup), "{level}");
        let said = call(
            &home,
            "echo x > src/main.rs; echo y > tests/new; echo z > README.md; echo l > lint/x; git \
                add . && \
             git -c user.name=A -c user.email=a@example.org commit -q -m x && echo done",
        );
        assert!(said.contains("done") && !said.contains("[sandbox]"), "{level}: {said}");
    }
}

/// Only a hard link that a command made is undone.
#[test]
fn a_file_that_had_two_names_before_stays_as_it_is() {
    for level in CONFINING_LEVELS {
        let home = home(level);
        assert!(
            shell(&home, "git init -q; echo A=1 > .env; ln .env other; ln .git/config mine"),
            "{level}"
        );
        let said = call(&home, "echo done");
        assert!(said.contains("done") && !said.contains("[sandbox]"), "{level}: {said}");
        assert!(
            shell(&home, "test .env -ef other && test .git/config -ef mine"),
            "{level}: {said}"
        );
    }
}

#[test]
fn tools_change_nothing_that_settings_name() {
    let home = home(SandboxLevel::Kernel);
    let setup = "mkdir sub; cd sub; repository; git config core.hooksPath tools/hooks; git config \
        include.path ../../a.cfg; \
        printf '[core]\\npager=./pager\\n' > ../a.cfg";
    assert!(shell(&home, &format!("set -e\n{SETUP}{setup}")));
    for path in ["sub/tools/hooks/pre-commit", "a.cfg", "sub/pager"] {
        let input = serde_json::json!({"path": path, "content": "evil"}).to_string();
        let ran = home.run(&["tools", "call", "write_file", &input, "--mode", "auto"]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("is read-only for tools"), "{path}: {said}");
    }
    let input = serde_json::json!({"path": "sub/other", "content": "mine"}).to_string();
    let ran = home.run(&["tools", "call", "write_file", &input, "--mode", "auto"]);
    assert!(home.has_file("sub/other"), "{ran:?}");
}
