//! Tests of the built-in lists, and of the decision about each entry.

use std::sync::Arc;

use super::lists::HIDDEN_EXCEPTIONS;
use super::*;
use crate::{
    ApprovalMode, Authorization, Authorizer, ChangeKind, ChangeSet, ContentDigest, DenialCode,
    Effect, FileChange, Policy, PolicyLayer, PolicyLevel,
};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text, None).expect("a path")
}

/// Returns a path below a directory that the pattern covers.
fn example(pattern: &str) -> String {
    format!("sub/{}", pattern.replace("**", "deep/deeper").replace('*', "any"))
}

fn effect(path: &str, act: ChangeKind) -> Effect {
    Effect::Write {
        changes: ChangeSet::new(vec![FileChange { path: self::path(path), kind: act, diff: None }]),
        confirm: false,
    }
}

fn write(path: &str) -> Effect {
    effect(path, ChangeKind::Create { after: ContentDigest { size: 1, digest: "0".into() } })
}

fn policy(text: &str) -> Policy {
    let mut policy = Policy::default();
    policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", text).expect("it parses"));
    policy
}

/// Returns the decisions with a user to ask and without one.
fn decided(policy: &Policy, mode: ApprovalMode, effect: &Effect) -> [&'static str; 2] {
    [true, false].map(|someone| {
        let authorizer = Authorizer::new(mode, someone).with_policy(Arc::new(policy.clone()));
        match authorizer.authorize("write_file", "{}", effect.clone()) {
            Authorization::Allow(..) => "allow",
            Authorization::Ask(pending) if pending.question().scope.is_none() => "ask each time",
            Authorization::Ask(_) => "ask",
            Authorization::Deny(denial) if denial.code == DenialCode::NobodyToAsk => {
                "nobody to ask"
            }
            Authorization::Deny(_) => "deny",
        }
    })
}

#[test]
fn the_lists_are_sorted_without_duplicates_and_each_entry_has_a_reason() {
    for list in BuiltInList::ALL.map(BuiltInList::entries).into_iter().chain([HIDDEN_EXCEPTIONS]) {
        assert!(
            list.is_sorted_by(|one, other| one.pattern < other.pattern),
            "{:?}",
            list.windows(2).find(|pair| pair[0].pattern >= pair[1].pattern)
        );
        for entry in list {
            assert!(ProtectedPattern::parse(entry.pattern).is_ok(), "{}", entry.pattern);
            assert!(
                entry.reason.split(' ').count() >= 3 && !entry.reason.ends_with('.'),
                "{}: {}",
                entry.pattern,
                entry.reason
            );
        }
    }
    assert!(PINNED.is_sorted() && PINNED.iter().all(|text| ProtectedPattern::parse(text).is_ok()));
    for one in [
        BuiltInList::Protected,
        BuiltInList::Instructions,
        BuiltInList::RunsCode,
        BuiltInList::Ordinary,
    ] {
        for other in [
            BuiltInList::Protected,
            BuiltInList::Instructions,
            BuiltInList::RunsCode,
            BuiltInList::Ordinary,
        ] {
            let both = one.entries().iter().find(|entry| {
                one != other && other.entries().iter().any(|its| its.pattern == entry.pattern)
            });
            assert_eq!(both, None, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn no_entry_is_covered_by_another_one() {
    for list in [BuiltInList::Protected, BuiltInList::Instructions, BuiltInList::RunsCode] {
        for entry in list.entries() {
            let example = example(entry.pattern);
            let parts = fold_parts(example.split('/'));
            let covered = list.entries().iter().filter(|other| other.pattern != entry.pattern);
            let by = covered
                .filter_map(|other| ProtectedPattern::parse(other.pattern).ok())
                .find(|other| other.covers(&parts));
            assert!(by.is_none(), "{} is covered by another pattern: {by:?}", entry.pattern);
        }
    }
}

#[test]
fn r035_a_change_of_a_listed_file_is_asked_each_time_in_every_mode() {
    let usual = Policy::default();
    let generous = policy("[write]\nallow = [\"**\"]\n[tools.write_file]\nuse = \"allow\"");
    for list in BuiltInList::NEEDS_APPROVAL {
        for entry in list.entries() {
            let example = example(entry.pattern);
            for below in [example.clone(), format!("{example}/below"), example.to_uppercase()] {
                for policy in [&usual, &generous] {
                    for mode in [ApprovalMode::Ask, ApprovalMode::AutoEdit, ApprovalMode::Auto] {
                        let found = decided(policy, mode, &write(&below));
                        assert_eq!(
                            found,
                            ["ask each time", "nobody to ask"],
                            "{below} in mode {mode}"
                        );
                    }
                    assert_eq!(
                        decided(policy, ApprovalMode::Plan, &write(&below)),
                        ["deny", "deny"],
                        "{below}"
                    );
                }
            }
        }
    }
}

#[test]
fn r035_a_protected_path_is_changed_in_no_mode_and_an_ordinary_one_as_the_mode_says() {
    let paths = ProtectedPaths::default();
    for entry in BuiltInList::Protected.entries() {
        let found = paths.protection(&path(&example(entry.pattern)));
        // Some of these paths are hidden as well.
        assert!(
            matches!(found, Some(PathProtection::ReadOnly | PathProtection::Hidden)),
            "{}: {found:?}",
            entry.pattern
        );
    }
    for entry in BuiltInList::Hidden.entries() {
        assert_eq!(
            paths.protection(&path(&example(entry.pattern))),
            Some(PathProtection::Hidden),
            "{}",
            entry.pattern
        );
    }
    for entry in HIDDEN_EXCEPTIONS {
        assert_eq!(paths.protection(&path(&example(entry.pattern))), None, "{}", entry.pattern);
    }
    for entry in BuiltInList::Ordinary.entries() {
        let example = example(entry.pattern);
        assert_eq!(paths.protection(&path(&example)), None, "{example}");
        for (mode, expected) in [
            (ApprovalMode::Ask, ["ask", "nobody to ask"]),
            (ApprovalMode::AutoEdit, ["allow"; 2]),
            (ApprovalMode::Auto, ["allow"; 2]),
        ] {
            assert_eq!(
                decided(&Policy::default(), mode, &write(&example)),
                expected,
                "{example} in mode {mode}"
            );
        }
    }
}

#[test]
fn r035_the_relatives_of_a_listed_file_are_listed_like_it() {
    let protected = [
        "mise/config.toml",
        "mise/config.local.toml",
        ".config/mise/conf.d/a.toml",
        ".config/mise.toml",
        ".mise.local.toml",
        "mise.ci.toml",
        ".Renviron",
        ".RData",
        ".latexmkrc",
        "latexmkrc",
        ".shadowenv.d/500_x.lisp",
        ".autoenv.zsh",
        ".config/direnv/direnvrc",
        ".byebugrc",
        "_irbrc",
        "irb.rc",
        "$irbrc",
        ".opencode.json",
        "kilo.json",
        ".kilo/kilo.jsonc",
        "firebender.json",
        ".iflow/settings.json",
        ".codebuddy/settings.json",
        ".pi/extensions/a.ts",
        ".theia/tasks.json",
        ".bash_completion",
        ".bashrc.d/a",
        ".config/zsh/.zshrc",
        ".config/zsh/aliases.zsh",
        ".oh-my-zsh/custom/a.zsh",
        ".selected_editor",
        ".xsessionrc",
        ".config/autostart/a.desktop",
        ".config/systemd/user/a.service",
        ".config/nushell/config.nu",
        ".rvmrc",
    ];
    let runs_code = [
        ".luarc.json",
        "config.nims",
        "nim.cfg",
        "build.zig",
        ".project",
        ".settings/a.prefs",
        "tailwind.config.ts",
        "svelte.config.js",
        ".vim/coc-settings.json",
        "vim/coc-settings.json",
        ".neoconf.json",
        ".vimspector.json",
        ".phpactor.json",
        ".stackblitzrc",
        "sandbox.config.json",
        "devfile.yaml",
        ".devfile.yaml",
        ".gitpod/automations.yaml",
        ".ona/automations.yaml",
        ".merlin",
        ".gitlint",
        "common/git-hooks/pre-commit",
        ".moon/workspace.yml",
        ".czrc",
        ".cz.toml",
        "cz.toml",
        ".cargo-husky/hooks/pre-push",
        ".hooks/pre-commit",
        ".trunk/trunk.yaml",
        "cog.toml",
        ".readthedocs.yaml",
        ".readthedocs.yml",
        "netlify.toml",
        "vercel.json",
        "amplify.yml",
        "bitrise.yml",
        ".vela.yml",
        "screwdriver.yaml",
        "bamboo-specs/bamboo.yml",
        ".space.kts",
        ".onedev-buildspec.yml",
        ".packit.yaml",
        ".zuul.yaml",
        ".zuul.d/a.yaml",
        ".drone.star",
        ".drone.jsonnet",
        ".cirrus.star",
        "wercker.yml",
        "codeship-steps.yml",
        "appspec.yml",
        ".ebextensions/a.config",
        ".platform/hooks/prebuild/a.sh",
        "Procfile",
        "_darcs/prefs/defaults",
        "_darcs/prefs/prefs",
        ".pijul/config",
        ".bzr/branch/branch.conf",
        ".arcconfig",
        ".reviewboardrc",
        ".rspec",
        ".xcode.env",
        ".xcode.env.local",
        ".scalafix.conf",
        ".mill-version",
        ".mill-jvm-opts",
        "default.nix",
        "Directory.Packages.props",
        "Directory.Build.rsp",
        ".opentofu-version",
        ".terragrunt-version",
        ".php-version",
        ".crystal-version",
        ".radian_profile",
        ".gdbearlyinit",
        "jupyter_server_config.py",
        "jupyter_notebook_config.json",
        "ipython_config.py",
        ".pnp.js",
        "pnpmfile.js",
        ".claude-plugin/marketplace.json",
        "plugins/a/hooks/hooks.json",
        ".continuerc.json",
        ".devin/hooks.v1.json",
        ".prettierrc",
        ".prettierrc.toml",
        ".eslintrc",
        ".eslintrc.json",
        ".eslintrc.cjs",
        ".stylelintrc",
        ".mypy.ini",
        "pylintrc.toml",
        ".pylintrc.toml",
        "setup.cfg",
        "rust-analyzer.toml",
        "hie.yaml",
        ".bsp/sbt.json",
        "ansible.cfg",
        ".builds/a.yml",
        ".build.yml",
        ".git/sequencer/opts",
        ".git/sequencer/todo",
        ".git/rebase-merge/strategy",
        ".git/rebase-merge/strategy_opts",
        ".git/rebase-merge/gpg_sign_opt",
        ".git/rebase-apply/apply-opt",
        ".git/worktrees/w/sequencer/opts",
        "prek.toml",
        ".pre-commit-config.yml",
        ".oxlintrc.json",
        "dprint.json",
        ".python-version",
        ".pdm-python",
        "global.json",
        ".hg/histedit-state",
        ".config/emacs/init.el",
    ];
    let instructions = [
        ".coderabbit.yaml",
        ".sourcery.yaml",
        ".ruler/AGENTS.md",
        "CONVENTIONS.md",
        ".bolt/prompt",
        ".pr_agent.toml",
        ".agent/rules/a.md",
        ".aiassistant/rules/a/b.md",
        ".clinerules-code",
        ".roorules-code",
        ".kilocoderules-code",
        "CRUSH.local.md",
        ".continuerules",
        ".qoder/rules/a.md",
        ".lingma/rules/a.md",
        "CODEBUDDY.md",
        "IFLOW.md",
    ];
    for text in protected {
        assert_eq!(
            ProtectedPaths::default().protection(&path(text)),
            Some(PathProtection::ReadOnly),
            "{text}"
        );
    }
    let list_of = |text: &str| ApprovalPaths::default().find(&path(text)).map(|listed| listed.list);
    for text in runs_code {
        assert_eq!(list_of(text), Some(BuiltInList::RunsCode), "{text}");
    }
    for text in instructions {
        assert_eq!(list_of(text), Some(BuiltInList::Instructions), "{text}");
    }
    for text in [
        "mise/tasks.toml",
        "src/opts",
        "todo",
        "src/strategy",
        "build.yml",
        "agent/rules/a.md",
        "setup.cfg.md",
        ".fossil-settings/ignore-glob",
        "hooks/useHooks.json",
        "docs/conventions.rst",
    ] {
        assert_eq!(
            (ProtectedPaths::default().protection(&path(text)), list_of(text)),
            (None, None),
            "{text}"
        );
    }
}

#[test]
fn every_way_to_change_a_listed_file_is_asked() {
    let policy = Policy::default();
    let after = || ContentDigest { size: 1, digest: "0".into() };
    let moved = ChangeKind::Move { from: path("docs/CLAUDE.md"), after: after() };
    for (path, act) in [
        ("AGENTS.md", ChangeKind::Create { after: after() }),
        ("agents.MD", ChangeKind::Modify { before: 1, after: after() }),
        ("a/b/AGENTS.md", ChangeKind::Delete { before: 1 }),
        ("harmless.md", moved),
        ("AGENTS.md", ChangeKind::Link { to: "docs/x.md".into() }),
        ("AGENTS.md", ChangeKind::Unlink),
        // A link in place of a directory of a listed path.
        (".github", ChangeKind::Link { to: "elsewhere".into() }),
        ("sub/.cargo", ChangeKind::Link { to: "elsewhere".into() }),
        ("AGENTS~1.MD", ChangeKind::Create { after: after() }),
        ("AGENTS.md.", ChangeKind::Create { after: after() }),
        ("A\u{200c}GENTS.md", ChangeKind::Create { after: after() }),
    ] {
        let found = decided(&policy, ApprovalMode::Auto, &effect(path, act.clone()));
        assert_eq!(found, ["ask each time", "nobody to ask"], "{path}: {act:?}");
    }
    for (path, act) in [
        ("docs/agents.md.txt", ChangeKind::Create { after: after() }),
        (".github", ChangeKind::CreateDirectory),
    ] {
        assert_eq!(
            decided(&policy, ApprovalMode::Auto, &effect(path, act)),
            ["allow"; 2],
            "{path}"
        );
    }
}

#[test]
fn one_listed_file_among_many_has_the_whole_change_asked_and_nothing_is_remembered_for_it() {
    let after = || ContentDigest { size: 1, digest: "0".into() };
    let change = |text: &str| FileChange {
        path: path(text),
        kind: ChangeKind::Create { after: after() },
        diff: None,
    };
    let both = Effect::Write {
        changes: ChangeSet::new(vec![change("src/a.rs"), change("src/CLAUDE.md")]),
        confirm: false,
    };
    assert_eq!(decided(&Policy::default(), ApprovalMode::Ask, &both)[0], "ask each time");
    // An approval for the session does not cover listed paths.
    let mut authorizer = Authorizer::new(ApprovalMode::Ask, true);
    let elsewhere = Effect::Write {
        changes: ChangeSet::new(vec![change("src/a.rs"), change("src/b.md")]),
        confirm: false,
    };
    let Authorization::Ask(pending) = authorizer.authorize("write_file", "{}", elsewhere) else {
        panic!("not asked")
    };
    let (_, approval) = authorizer.approve_scope(pending).expect("it is approved");
    authorizer.remember(approval.expect("there is a scope"));
    assert!(matches!(
        authorizer.authorize("write_file", "{}", write("src/c.rs")),
        Authorization::Allow(..)
    ));
    assert!(matches!(
        authorizer.authorize("write_file", "{}", write("src/CLAUDE.md")),
        Authorization::Ask(_)
    ));
}

#[test]
fn r036_a_denial_of_a_listed_path_has_reason_and_remedy() {
    let authorizer = Authorizer::new(ApprovalMode::Auto, false);
    let Authorization::Deny(denial) =
        authorizer.authorize("write_file", "{}", write("docs/AGENTS.md"))
    else {
        panic!("not denied")
    };
    insta::assert_snapshot!(denial, @"denied (nobody-to-ask): write_file needs approval to write \
        docs/AGENTS.md, and there is no terminal to ask for it: docs/AGENTS.md is on the \
        built-in list of files that contain instructions for agents: Cofferdam and most other \
        agents read instructions from it, so each change needs approval in every mode. The user \
        can approve it in a terminal, edit the file by hand, or add `AGENTS.md` to `writable` \
        under [protected] in their policy file.");
}

#[test]
fn the_user_and_a_trusted_project_can_take_a_pattern_off_the_lists_and_a_stranger_cannot() {
    let text = "[protected]\nwritable = [\"AGENTS.md\", \".github/workflows\"]";
    let lifted = policy(text);
    for listed in ["AGENTS.md", "a/AGENTS.md", ".github/workflows/ci.yml"] {
        assert_eq!(decided(&lifted, ApprovalMode::Auto, &write(listed)), ["allow"; 2], "{listed}");
    }
    assert_eq!(decided(&lifted, ApprovalMode::Auto, &write("CLAUDE.md"))[0], "ask each time");
    let mut stranger = Policy::default();
    stranger
        .add_layer(PolicyLayer::parse(PolicyLevel::Project, "p.toml", text).expect("it parses"));
    assert_eq!(decided(&stranger, ApprovalMode::Auto, &write("AGENTS.md"))[0], "ask each time");
    // Rules of another layer can still ask or deny.
    let mut both = lifted;
    both.add_layer(
        PolicyLayer::parse(PolicyLevel::System, "s.toml", "[write]\ndeny = [\"**/AGENTS.md\"]")
            .expect("it parses"),
    );
    assert_eq!(decided(&both, ApprovalMode::Auto, &write("AGENTS.md")), ["deny"; 2]);
}
