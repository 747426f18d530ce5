//! Tests of the protected paths, and of policies that change them.

use super::*;
use crate::{Policy, PolicyLayer, PolicyLevel};

fn of(path: &str) -> Option<PathProtection> {
    ProtectedPaths::default().protection(&WorkspacePath::parse(path, None).expect("a path"))
}

#[test]
fn what_programs_run_by_themselves_is_read_only_at_any_depth() {
    let paths = [
        ".git/hooks",
        ".git/hooks/pre-commit",
        ".git/config",
        "vendor/lib/.git/hooks/post-checkout",
        ".git/modules/sub/hooks/x",
        ".git/modules/a/b/config",
        ".git/worktrees/w/config.worktree",
        ".git/commondir",
        ".gitmodules",
        ".vscode/tasks.json",
        "packages/a/.idea/workspace.xml",
        ".mcp.json",
        ".claude/settings.json",
        ".bashrc",
        ".cofferdam/policy.toml",
        "team.code-workspace",
    ];
    for path in paths {
        assert_eq!(of(path), Some(PathProtection::ReadOnly), "{path}");
    }
}

#[test]
fn what_holds_keys_is_hidden_at_any_depth() {
    for path in [
        ".env",
        ".env.local",
        "a/b/.env.production",
        ".envrc",
        "deploy/id_ed25519",
        "tls/server.key",
        ".ssh/config",
        ".aws/x/y",
        "deploy/prod.env",
        "prod.env.local",
        ".flaskenv",
        ".dev.vars",
        ".dev.vars.production",
        ".streamlit/secrets.toml",
        "terraform.tfstate",
        "infra/terraform.tfstate.backup",
        "terraform.tfstate.1700000000.backup",
        "infra/prod.auto.tfvars",
        "terraform.tfvars.json",
        ".dockercfg",
        ".config/containers/auth.json",
        ".s3cfg",
        ".boto",
        ".oci/config",
        ".oci/keys/a",
        "AuthKey_ABC.p8",
        ".claude/.credentials.json",
        ".codex/auth.json",
        ".gemini/oauth_creds.json",
        ".pulumi/credentials.json",
        ".vault_pass",
        ".vault_password.txt",
        ".subversion/auth/svn.simple/0a1b",
        "ssh_host_ed25519_key",
        "etc/ssh/ssh_host_rsa_key",
    ] {
        assert_eq!(of(path), Some(PathProtection::Hidden), "{path}");
    }
    for path in [
        "prod.env.example",
        "example.env",
        "prod.sample.env",
        "terraform.tfvars.example",
        "example.tfvars",
        ".dev.vars.example",
        "ssh_host_ed25519_key.pub",
        "src/vite-env.d.ts",
        "main.tf",
        "auth.json",
        ".subversion/config",
        ".env.example",
        ".env.local.sample",
        "environment.rs",
        ".environment",
        "id_rsa.pub",
        "key.rs",
        "tls/server.pub.pem",
    ] {
        assert_eq!(of(path), None, "{path}");
    }
}

#[test]
fn copies_that_programs_keep_beside_a_hidden_file_are_hidden_too() {
    let paths = ProtectedPaths::default();
    let forms: &[fn(&str) -> String] = &[
        |name| format!("{name}~"),
        |name| format!("{name}.~1~"),
        |name| format!("#{name}#"),
        |name| format!(".#{name}"),
        |name| format!(".{name}.swp"),
        |name| format!(".{name}.swo"),
        |name| format!("{name}.swp"),
        |name| format!(".{name}.un~"),
        |name| format!("{name}.bak"),
        |name| format!("{name}.backup"),
        |name| format!("{name}.orig"),
        |name| format!("{name}.old"),
        |name| format!("{name}.save"),
        |name| format!("{name}.lock"),
        |name| format!("{name}.new"),
        |name| format!("{name}.save.1"),
        |name| format!("{name}.bak.1"),
        |name| format!("{name}.crswap"),
        |name| format!(".{name}.svz"),
        |name| format!(".{name}.saa"),
        |name| format!("{name}-e"),
        |name| format!("{name},v"),
        |name| format!(".{name}.Xy12Ab"),
        |name| format!("{name} (1)"),
        |name| format!("{name} copy"),
        |name| format!("{}.BAK~", name.to_uppercase()),
    ];
    for entry in BuiltInList::Hidden.entries() {
        let name = entry.pattern.replace('*', "any");
        let (folder, name) = name.rsplit_once('/').map_or(("a", &*name), |parts| parts);
        for form in forms {
            let copy = form(name);
            let path = format!("{folder}/{copy}");
            let names = paths.names();
            assert!(path.split('/').any(|part| names.may_match(part)), "{path}");
            for found in [
                paths.protection_of_parts(path.split('/')),
                paths.protection_of_parts(format!("{path}/below").split('/')),
                paths.find_exact(path.split('/')).map(|(how, _)| how),
            ] {
                assert_eq!(found, Some(PathProtection::Hidden), "{path}");
            }
        }
    }
    assert_eq!(of(".kube~/config.bak"), Some(PathProtection::Hidden));
    let own = under("", "hidden = [\"*.sqlite\"]\nshown = [\".env.old\"]", "", false);
    assert_eq!(in_list(&own, "x.sqlite~"), Some(PathProtection::Hidden));
    assert_eq!(in_list(&own, ".env.old"), None);
    // A copy of a readable file is readable, and one of a protected file can be written.
    for path in ["ca.pub.pem~", "x.tfvars.example", ".npmrc~", "main.rs.bak", "Cargo.lock"] {
        assert_eq!(of(path), None, "{path}");
    }
}

#[test]
fn case_and_characters_that_do_not_count_make_no_difference() {
    for path in [
        ".GIT/hooks",
        ".git/HOOKS/x",
        ".Git/Config",
        ".g\u{200c}it/hooks",
        ".VSCODE/tasks.json",
        ".ba\u{17f}hrc",
    ] {
        assert_eq!(of(path), Some(PathProtection::ReadOnly), "{path}");
    }
    assert_eq!(of(".ENV"), Some(PathProtection::Hidden));
}

#[test]
fn what_is_beside_is_not_protected() {
    for path in [
        "",
        "git/hooks",
        ".github/workflows/ci.yml",
        ".gitignore",
        ".git/index",
        ".git/refs/heads/main",
        "src/config",
        "a.git",
    ] {
        assert_eq!(of(path), None, "{path}");
    }
}

#[test]
fn directories_around_protected_paths_are_pinned() {
    for path in [".git", "sub/.git", ".git/modules", ".git/modules/sub", ".GIT"] {
        assert_eq!(of(path), Some(PathProtection::Pinned), "{path}");
    }
}

/// Returns the protected paths under policies of the system, the user and a project, trusted or
/// not.
fn under(system: &str, user: &str, project: &str, trusted: bool) -> ProtectedPaths {
    let layer = |level: PolicyLevel, text: &str| {
        let text = format!("[protected]\n{text}");
        PolicyLayer::parse(level, &format!("{level}.toml"), &text)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let mut policy = Policy::default();
    policy.add_layer(layer(PolicyLevel::System, system));
    policy.add_layer(layer(PolicyLevel::User, user));
    let project = layer(PolicyLevel::Project, project);
    if trusted {
        policy.add_trusted_layer(project)
    } else {
        policy.add_layer(project)
    }
    policy.protected_paths()
}

fn in_list(paths: &ProtectedPaths, path: &str) -> Option<PathProtection> {
    paths.protection(&WorkspacePath::parse(path, None).expect("a path"))
}

#[test]
fn the_user_can_add_and_show() {
    let user = r#"
        read_only = ["infra/**/*.tf"]
        hidden = ["secrets"]
        shown = ["tests/**/*.pem", "secrets/readme"]
        writable = [".vscode"]"#;
    let paths = under("", user, "", false);
    let table = [
        ("infra/eu/main.tf", Some(PathProtection::ReadOnly)),
        ("infra/main.tf", Some(PathProtection::ReadOnly)),
        ("a/secrets/b", Some(PathProtection::Hidden)),
        ("secrets/readme", None),
        ("tests/tls/ca.pem", None),
        ("ca.pem", Some(PathProtection::Hidden)),
        (".vscode/tasks.json", None),
        (".idea/x", Some(PathProtection::ReadOnly)),
    ];
    for (path, expected) in table {
        assert_eq!(in_list(&paths, path), expected, "{path}");
    }
}

#[test]
fn no_level_lifts_what_another_one_protects() {
    let protecting = "hidden = [\"vault\", \"*.sqlite\"]\nread_only = [\".vscode\"]";
    let lifting = "shown = [\"vault/**\", \"*.sqlite\", \"*.pem\"]\nwritable = [\".vscode\"]";
    for (paths, who) in [
        (under(protecting, lifting, "", false), "the user what the system protects"),
        (under(protecting, "", lifting, true), "a trusted project what the system protects"),
        (under(lifting, protecting, "", false), "the system what the user protects"),
        (under("", lifting, protecting, false), "the user what a stranger protects"),
    ] {
        for (path, how) in [
            ("vault/a", PathProtection::Hidden),
            ("x.sqlite", PathProtection::Hidden),
            (".vscode/a", PathProtection::ReadOnly),
        ] {
            assert_eq!(in_list(&paths, path), Some(how), "{path}: {who}");
        }
    }
    // An exception of the built-in list applies only to the built-in list.
    let paths = under("", "hidden = [\"vault\"]", "", false);
    assert_eq!(in_list(&paths, "vault/x.pub.pem"), Some(PathProtection::Hidden));
    assert_eq!(in_list(&paths, "x.pub.pem"), None);
    // An untrusted project cannot lift any protection, not even its own.
    let stranger = under("", "", lifting, false);
    assert_eq!(in_list(&stranger, "ca.pem"), Some(PathProtection::Hidden));
    assert_eq!(in_list(&stranger, ".vscode/a"), Some(PathProtection::ReadOnly));
}

#[test]
fn what_the_program_keeps_is_hidden_and_stays_where_it_is() {
    let own = WorkspacePath::parse(".local/state/cofferdam", None).expect("a path");
    let paths =
        under("", "shown = [\"cofferdam\", \"**/trust.json\"]", "", false).with_own_path(&own);
    let table = [
        (".local/state/cofferdam", Some(PathProtection::Hidden)),
        (".local/state/cofferdam/trust.json", Some(PathProtection::Hidden)),
        (".local/state", Some(PathProtection::Pinned)),
        (".local", Some(PathProtection::Pinned)),
        (".local/share", None),
        ("sub/.local/state/cofferdam/x", None),
    ];
    for (path, expected) in table {
        assert_eq!(in_list(&paths, path), expected, "{path}");
    }
}

#[test]
fn a_bad_pattern_is_an_error_with_its_text() {
    for text in ["/etc", "a//b", "../x", "a**", "[ab]", "**", "", &"a/".repeat(40)] {
        let error = ProtectedPaths::check_pattern(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{text}` is not a pattern")), "{error}");
    }
}

#[test]
fn a_pattern_of_many_stars_takes_no_long_time() {
    let many = [
        "*a*a*a*a*a*a*a*a*a*b".to_owned(),
        format!("{}zz/y", "**/".repeat(30)),
        format!("{}zz", "**/a/".repeat(15)),
    ];
    let path = WorkspacePath::parse(&format!("{}{}", "a/".repeat(900), "a".repeat(2000)), None)
        .expect("a path");
    for pattern in many {
        let paths = under("", &format!("hidden = [\"{pattern}\"]"), "", false);
        assert_eq!(paths.protection(&path), None, "{pattern}");
    }
}

#[test]
fn as_regular_expressions_the_patterns_hold_the_same_paths() {
    let list = ProtectedPaths::default();
    let expressions: Vec<_> = list
        .read_only_regexes()
        .iter()
        .map(|text| regex::Regex::new(&format!("^{text}(/|$)")).expect("an expression"))
        .collect();
    let paths = [
        ".git/hooks",
        ".GIT/Hooks/pre-commit",
        "a/b/.git/config",
        ".git/modules/a/b/hooks/x",
        ".git/modules/hooks",
        "my.code-workspace",
        "a/.vscode/tasks.json",
        ".config/fish/conf.d/x",
        ".git",
        ".git/configuration",
        "xgit/hooks",
        ".git/a/hooks",
        "src/code-workspace",
        "vscode",
    ];
    for path in paths {
        let found = expressions.iter().any(|expression| expression.is_match(path));
        assert_eq!(found, list.is_read_only(path.split('/')), "{path}");
    }
}

#[test]
fn other_names_of_a_path_on_some_file_systems_are_protected_like_it() {
    let others = [
        "GIT~1/hooks/x",
        ".git./hooks/x",
        ".git /hooks/x",
        ".git::$INDEX_ALLOCATION/hooks/x",
        "VSCODE~1/tasks.json",
        ".g\u{ad}it/hooks/x",
        "MCP~1.JSO",
        "GITMOD~1",
    ];
    for path in others {
        assert_eq!(
            ProtectedPaths::default().protection_of_parts(path.split('/')),
            Some(PathProtection::ReadOnly),
            "{path}"
        );
        assert!(
            path.split('/').any(|part| ProtectedPaths::default().names().may_match(part)),
            "{path}"
        );
    }
    for path in ["ENV~1", "ENV~1.LOC", ".env ", ".e\u{ad}nv", "ID_ED2~1"] {
        assert_eq!(
            ProtectedPaths::default().protection_of_parts(path.split('/')),
            Some(PathProtection::Hidden),
            "{path}"
        );
    }
    for path in ["main.rs~", "a~1", "git~", "src/a~1/b", "..", "a."] {
        assert_eq!(ProtectedPaths::default().protection_of_parts(path.split('/')), None, "{path}");
    }
}

#[test]
fn a_name_is_folded_like_on_the_most_lenient_file_systems() {
    for (name, folded) in [
        ("README.md", "readme.md"),
        ("a. .", "a"),
        ("a:stream", "a"),
        (":a", ":a"),
        ("..", ".."),
        ("a\u{200d}b", "ab"),
        ("\u{212a}", "k"),
    ] {
        assert_eq!(fold_name(name), folded, "{name:?}");
    }
}
