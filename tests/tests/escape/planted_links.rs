//! Links that lead to what a command planted: in what was set aside, outside of the workspace, and
//! in directories of packages.

use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::program::{TestHome, wait_until};

use super::CONFINING_LEVELS;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// Makes a repository that leaves a trace when git comes by, and a task of an editor that does.
const PLANT: &str = concat!(
    "live() { mkdir -p $1/.git/objects $1/.git/refs; echo ref: refs/heads/m > $1/.git/HEAD; ",
    r#"printf '[core]\nrepositoryformatversion=0\nbare=false\nfsmonitor="touch RAN; false"\n' "#,
    "> $1/.git/config; }\n",
    "task() { mkdir -p $1/.vscode; echo touch RAN > $1/.vscode/tasks.json; }\n",
);
/// An editor, which runs the tasks of the directory that it opens.
const EDITOR: &str = "edit() { cd $1 && [ -f .vscode/tasks.json ] && sh .vscode/tasks.json; }\n";

struct Plant {
    name: &'static str,
    /// What the user did in the workspace before. `OUT` is a directory that commands may write.
    setup: &'static str,
    /// One after the other. `SET_ASIDE` is where the first one's `.vscode` is then.
    commands: &'static [&'static str],
    /// What the user does afterwards.
    act: &'static str,
}

const PLANTS: &[Plant] = &[
    Plant {
        name: "what was set aside, in place of a directory",
        setup: "mkdir src",
        commands: &["live .vscode", "mv src src.old; ln -s SET_ASIDE src"],
        act: "cd src && git status",
    },
    Plant {
        name: "what was set aside, through two links",
        setup: "mkdir src",
        commands: &["live .vscode", "mv src src.old; ln -s SET_ASIDE one; ln -s one src"],
        act: "cd src && git status",
    },
    Plant {
        name: "settings that were set aside",
        setup: "",
        commands: &["task .vscode/x", "mkdir -p app; ln -s SET_ASIDE/x/.vscode app/lib"],
        act: "sh app/lib/tasks.json",
    },
    Plant {
        name: "a directory that commands may write",
        setup: "mkdir src",
        commands: &["live OUT/p; mv src src.old; ln -s OUT/p src"],
        act: "cd src && git status",
    },
    Plant {
        name: "a link that was changed",
        setup: "mkdir a; ln -s a src",
        commands: &["live OUT/p", "ln -sfn OUT/p src"],
        act: "cd src && git status",
    },
    Plant {
        name: "a link that was moved with its directory",
        setup: "mkdir -p deep/er; ln -s ../../OUTNAME/p deep/er/src; ln -s OUT OUTNAME",
        commands: &["live OUT/p; rm OUTNAME; mv deep/er .; ln -s OUT/p er/new"],
        act: "cd er/new && git status",
    },
    Plant {
        name: "a package in place of a directory",
        setup: "mkdir app",
        commands: &[
            "mkdir node_modules; mv app node_modules/app; ln -s node_modules/app app; task \
            app",
        ],
        act: "edit app",
    },
    Plant {
        name: "a package in place of a directory with tasks",
        setup: "mkdir -p app/.vscode; echo true > app/.vscode/tasks.json",
        commands: &["mkdir -p node_modules/y; mv app app2; task node_modules/y; ln -s \
            node_modules/y app"],
        act: "edit app",
    },
    Plant {
        name: "a package that was planted before the link",
        setup: "mkdir app",
        commands: &["task node_modules/app", "mv app app2; ln -s node_modules/app app"],
        act: "edit app",
    },
    Plant {
        name: "a package that was planted after the link",
        setup: "mkdir app",
        commands: &[
            "mkdir -p node_modules/app; mv app app2; ln -s node_modules/app app",
            "task node_modules/app",
        ],
        act: "edit app",
    },
    Plant {
        name: "a package that was changed after the link",
        setup: "mkdir -p node_modules/app/.vscode; echo true > \
            node_modules/app/.vscode/tasks.json; ln -s node_modules/app app",
        commands: &["task node_modules/app"],
        act: "edit app",
    },
    Plant {
        name: "a directory of packages under another name",
        setup: "",
        commands: &["task node_modules/x; ln -s node_modules lib"],
        act: "edit lib/x",
    },
    Plant {
        name: "a package behind another link",
        setup: "mkdir app",
        commands: &[
            "mkdir -p venv/a; task venv/b; ln -s ../b venv/a/src; rmdir app; ln -s venv/a app",
        ],
        act: "edit app/src",
    },
    Plant {
        name: "a package through the working directory of whoever follows the link",
        setup: "",
        commands: &["task node_modules/x; ln -s /proc/self/cwd/node_modules/x app"],
        act: "edit app",
    },
];

fn home(level: SandboxLevel, outside: &Path) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write_file(
        "config/cofferdam/config.toml",
        format!(
            "[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\nwrite = [{:?}]\n",
            outside.display().to_string()
        ),
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
    let command = command.args(["-c", line]).stdin(Stdio::null());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("sh starts").success()
}

/// Whether something ran when the user came by, and what the commands said.
fn runs(level: SandboxLevel, plant: &Plant) -> (bool, String) {
    let outside = tempfile::tempdir().expect("a directory");
    let outside = outside.path().canonicalize().expect("it is there");
    let (ran, shared) = (outside.join("ran"), outside.join("shared"));
    std::fs::create_dir(&shared).expect("it is made");
    let home = home(level, &shared);
    let planted = home.workspace().join(".vscode").display().to_string();
    let mut set_aside = planted;
    let fill = |line: String, set_aside: &str| {
        line.replace("SET_ASIDE", set_aside)
            .replace("RAN", &ran.display().to_string())
            .replace("OUTNAME", "shared")
            .replace("OUT", &shared.display().to_string())
    };
    assert!(shell(&home, &fill(format!("set -e\n{}", plant.setup), "")), "{}", plant.name);
    let mut all = String::new();
    for command in plant.commands {
        let said = call(&home, &fill(format!("{PLANT}{command}"), &set_aside));
        if let Some((_, rest)) = said.split_once("it was moved to ") {
            set_aside = rest.split(['\n', ';']).next().unwrap_or_default().to_owned();
        }
        all.push_str(&said);
    }
    let act = format!("PATH=/usr/local/bin:/usr/bin:/bin\n{EDITOR}{}", plant.act);
    shell(&home, &fill(act, &set_aside));
    (ran.exists(), all)
}

#[test]
fn unconfined_plants_run_through_links() {
    let idle: Vec<_> = PLANTS
        .iter()
        .map(|plant| (plant.name, runs(SandboxLevel::None, plant)))
        .filter(|(_, (ran, _))| !ran)
        .collect();
    assert!(idle.is_empty(), "these show nothing: {idle:#?}");
}

#[test]
fn no_link_leads_to_what_a_command_planted() {
    let all =
        CONFINING_LEVELS.iter().flat_map(|level| PLANTS.iter().map(move |plant| (level, plant)));
    let survived: Vec<String> = all
        .filter_map(|(level, plant)| {
            let (ran, said) = runs(*level, plant);
            let said = said.chars().take(900).collect::<String>();
            ran.then(|| format!("`{level}`: {}\n    said: {said}", plant.name))
        })
        .collect();
    assert!(survived.is_empty(), "{}", survived.join("\n"));
}

#[test]
fn links_of_package_managers_stay() {
    let line = "mkdir -p packages/a/node_modules node_modules/.bin node_modules/clean/dist \
        venv/bin; echo x > node_modules/clean/tool; ln -s ../clean/tool node_modules/.bin/tool; \
        ln -s ../packages/a node_modules/a; ln -s ../../../node_modules/clean \
        packages/a/node_modules/clean; ln -s node_modules/clean/dist vendor; ln -s venv .venv; ln \
        -s /usr/bin/env venv/bin/python; ln -s OUT/store node_modules/stored; ln -s /dev/stdout \
        log; ln -s node_modules/clean/tool tool; echo done";
    for level in CONFINING_LEVELS {
        let outside = tempfile::tempdir().expect("a directory");
        let outside = outside.path().canonicalize().expect("it is there");
        let home = home(level, &outside);
        let line = line.replace("OUT", &outside.display().to_string());
        let said = call(&home, &line);
        assert!(said.contains("done") && !said.contains("[sandbox]"), "{level}: {said}");
        let said = call(&home, "ls -l; echo done");
        assert!(said.contains("done") && !said.contains("[sandbox]"), "{level}: {said}");
    }
}

#[test]
fn a_link_in_place_of_a_listed_directory_is_reported() {
    for level in CONFINING_LEVELS {
        let outside = tempfile::tempdir().expect("a directory");
        let home = home(level, outside.path());
        let said = call(&home, "ln -s /usr/share .cargo; ln -s /usr/share gradle; echo done");
        for name in [".cargo", "gradle"] {
            let expected = match level {
                SandboxLevel::Full => "the changes of .cargo, gradle were discarded".to_owned(),
                _ => format!("created {name}, one of"),
            };
            assert!(said.contains(&expected), "{level}: {said}");
        }
    }
}

#[test]
fn what_was_set_aside_comes_back_as_the_notice_says() {
    for level in CONFINING_LEVELS {
        let outside = tempfile::tempdir().expect("a directory");
        let home = home(level, outside.path());
        let said = call(&home, "mkdir .vscode; echo mine > .vscode/tasks.json");
        let file = said.split_once("it was moved to ").map(|(_, rest)| rest.lines().next());
        let file = file.flatten().unwrap_or_else(|| panic!("{level}: {said}"));
        assert!(said.contains("base64 -d FILE | tar -xf - -C DIRECTORY"), "{level}: {said}");
        assert!(shell(&home, &format!("mkdir back; base64 -d {file} | tar -xf - -C back")));
        assert!(shell(&home, "grep -q mine back/.vscode/tasks.json"), "{level}");
    }
}

#[test]
fn two_users_run_one_command_at_a_time_in_a_workspace() {
    for level in CONFINING_LEVELS {
        let outside = tempfile::tempdir().expect("a directory");
        let [home, other] = [(), ()].map(|()| self::home(level, outside.path()));
        let workspace = home.workspace().display().to_string();
        let start = |home: &TestHome, line: &str| {
            let input = serde_json::json!({"command": line}).to_string();
            let arguments =
                ["-C", workspace.as_str(), "tools", "call", "bash", &input, "--mode", "auto"];
            let mut command = home.command(&arguments);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("it starts")
        };
        let mut one = start(&home, "mkdir .vscode; echo x > .vscode/x; touch ready; sleep 0.7");
        wait_until("the first runs", || home.has_file("ready"));
        let mut two = start(&other, "sleep 0.5; touch done");
        assert!(one.wait().expect("it ends").success(), "{level}");
        assert!(two.wait().expect("it ends").success(), "{level}");
        assert!(home.has_file("done") && !home.has_file(".vscode"), "{level}");
    }
}

#[test]
fn notices_are_there_beside_any_output() {
    let flood = "mkdir .vscode; head -c 700000 /dev/zero | tr '\\0' '\\377'; head -c 700000 \
        /dev/zero | tr '\\0' x >&2";
    for level in CONFINING_LEVELS {
        let outside = tempfile::tempdir().expect("a directory");
        let home = home(level, outside.path());
        let said = call(&home, flood);
        let end: String = said.chars().rev().take(2000).collect::<Vec<_>>().iter().rev().collect();
        assert!(end.contains(".vscode was created, which is not allowed"), "{level}: {end}");
        assert!(said.contains("bytes omitted"), "{level}: {end}");
    }
}

#[test]
fn instructions_and_hooks_are_named_before_a_crowd_of_other_files() {
    for level in CONFINING_LEVELS {
        let outside = tempfile::tempdir().expect("a directory");
        let home = home(level, outside.path());
        let said = call(
            &home,
            "for i in $(seq 60); do mkdir a$i; echo x > a$i/Makefile; echo x > a$i/build.rs; done; \
                echo x > zz.md; mkdir z; echo x > z/AGENTS.md; mkdir -p z/.husky; echo x > \
                z/.husky/pre-commit",
        );
        let expected = match level {
            SandboxLevel::Full => "the changes of z/AGENTS.md, z/.husky/pre-commit were discarded",
            _ => "created z/AGENTS.md",
        };
        assert!(said.contains(expected), "{level}: {said}");
        assert!(said.matches("; review it").count() <= 40, "{level}: {said}");
    }
}
