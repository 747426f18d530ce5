//! Tests of lines that a pattern covers or might cover.

use super::*;

fn on(pattern: &str, line: &str, verdict: Verdict) -> PatternMatch {
    CommandPattern::parse(pattern).expect(pattern).matches(line, verdict)
}

#[test]
fn an_allow_covers_plain_words_and_nothing_else() {
    let table = [
        ("git status", "git status", true),
        ("git status", "git  status ", true),
        ("git status", "git status --short", false),
        ("git status *", "git status", true),
        ("git status *", "git status --short -b", true),
        ("git status *", "git statusx", false),
        ("git status *", "git", false),
        ("git status *", "/tmp/git status", false),
        ("cargo t*", "cargo test", true),
        ("cargo t*", "cargo test --lib", false),
        ("git * --stat", "git log --stat", true),
        ("git * --stat", "git log -p --stat", false),
        ("*", "rm -rf x", true),
    ];
    for (pattern, line, expected) in table {
        assert_eq!(
            on(pattern, line, Verdict::Allow),
            PatternMatch::from_bool(expected),
            "{pattern} on {line}"
        );
    }
}

#[test]
fn r039_an_opaque_line_is_never_allowed() {
    for line in [
        "git status; x",
        "git status | sh",
        "git status && x",
        "git status $(x)",
        "A=b git status",
        "git 'status'",
        "git status\nx",
    ] {
        assert_eq!(on("git status *", line, Verdict::Allow), PatternMatch::No, "{line}");
        assert_eq!(on("*", line, Verdict::Allow), PatternMatch::No, "{line}");
    }
}

#[test]
fn a_denied_command_is_found_in_longer_lines() {
    let table = [
        ("git push", PatternMatch::Yes),
        ("git push --force", PatternMatch::Yes),
        ("/usr/bin/git push", PatternMatch::Yes),
        ("true; git push", PatternMatch::Yes),
        ("sh -c 'git push'", PatternMatch::Yes),
        ("A=b git push", PatternMatch::Yes),
        ("true && (git push)", PatternMatch::Yes),
        ("git\tpush\t--force", PatternMatch::Yes),
        ("git \\\npush", PatternMatch::Yes),
        ("env git push", PatternMatch::Maybe),
        ("git -C x push", PatternMatch::Yes),
        ("g''it push", PatternMatch::Maybe),
        ("git status", PatternMatch::No),
        ("cat a | wc", PatternMatch::Maybe),
    ];
    for (line, expected) in table {
        for verdict in [Verdict::Ask, Verdict::Deny] {
            assert_eq!(on("git push *", line, verdict), expected, "{line}");
        }
    }
    assert_eq!(on("*", "anything | at all", Verdict::Deny), PatternMatch::Yes);
}

#[test]
fn r035_a_subcommand_is_found_behind_its_options() {
    use PatternMatch::{Maybe, No, Yes};
    let table = [
        // Known options: the line has one reading.
        ("git push *", "git -C . push", Yes),
        ("git push *", "git --no-pager push origin", Yes),
        ("git push *", "git --git-dir=x push", Yes),
        ("git push *", "git --git-dir x --work-tree y push", Yes),
        ("git push *", "git -c core.pager=x push", Yes),
        ("git push *", "git -C push status", No),
        ("git push *", "git --no-pager log push", No),
        ("git push *", "git stash push", No),
        ("git push *", "git help push", No),
        ("git push", "git -C . push", Yes),
        ("git push", "git -C . push origin", No),
        ("git remote add *", "git -C . remote add x y", Yes),
        ("git remote add *", "git remote -v add x y", Maybe),
        ("cargo publish *", "cargo +nightly publish", Yes),
        ("cargo publish *", "cargo +nightly -Z unstable-options --locked publish", Yes),
        ("cargo publish *", "cargo --config x publish", Yes),
        ("npm publish *", "npm --prefix x publish", Yes),
        ("pnpm publish *", "pnpm -r --filter a publish", Yes),
        ("yarn publish *", "yarn --cwd x publish", Yes),
        ("docker push *", "docker --context x push y", Yes),
        ("docker push *", "docker -H tcp://x push y", Yes),
        ("podman push *", "podman --remote push y", Yes),
        ("kubectl delete *", "kubectl -n prod delete pod x", Yes),
        ("kubectl delete *", "kubectl --context=prod delete pod x", Yes),
        ("helm uninstall *", "helm --kube-context x uninstall y", Yes),
        ("terraform apply *", "terraform -chdir=x apply", Yes),
        ("tofu apply *", "tofu -chdir=x apply", Yes),
        ("pip install *", "pip --proxy x install y", Yes),
        ("uv publish *", "uv --directory x publish", Yes),
        ("poetry publish *", "poetry -C x publish", Yes),
        ("go install *", "go -C x install ./...", Yes),
        ("gh release *", "gh -R a/b release create", Yes),
        ("systemctl stop *", "systemctl --user --now stop x", Yes),
        ("apt install *", "apt -y install x", Yes),
        ("aws s3 rm *", "aws --profile p s3 rm s3://x", Yes),
        ("gcloud run deploy *", "gcloud --project p run deploy x", Yes),
        ("az group delete *", "az --subscription s group delete x", Yes),
        ("make deploy", "make -C x deploy", Yes),
        // Unknown options: every reading counts.
        ("git push *", "git --new-option push", Maybe),
        ("git push *", "git --new-option x push", Maybe),
        ("npm publish *", "npm --silent publish", Maybe),
        ("npm publish *", "npm --silent ls", No),
        ("mytool deploy *", "mytool --verbose deploy", Maybe),
        ("mytool deploy *", "mytool -o x deploy", Maybe),
        ("mytool deploy *", "mytool x deploy", No),
        // The subcommand by a synonym, an abbreviation, or a possible alias.
        ("git push *", "git -c alias.p=push p", Maybe),
        ("git push *", "git pub", Maybe),
        ("git push *", "git send-pack x", Maybe),
        ("git push *", "git lfs push", Maybe),
        ("npm publish *", "npm pub", Maybe),
        ("npm install *", "npm add x", Maybe),
        ("cargo build *", "cargo b", Maybe),
        ("docker run *", "docker container run x", Maybe),
        ("docker push *", "docker --debug image push x", Maybe),
        ("gcloud run deploy *", "gcloud beta run deploy x", Maybe),
        ("make deploy *", "make all deploy", Maybe),
        ("make deploy *", "make V=1 deploy", Maybe),
        ("make deploy *", "make all", No),
        // Program and subcommand in one word, and the program by another name or path.
        ("git push *", "git-push", Yes),
        ("git push *", "/usr/lib/git-core/git-push -f", Yes),
        ("git push *", "/usr/lib/git-core/git -C x push", Yes),
        ("git push *", "env git-push", Maybe),
        ("git push *", "git-pull", No),
        ("git-push *", "git push", Maybe),
        ("git-push *", "git -C x push", Maybe),
        ("docker compose up *", "docker-compose -f x up", Maybe),
        ("docker-compose up *", "docker compose up", Maybe),
        ("pip install *", "pip3 install x", Maybe),
        ("pip install *", "python -m pip -q install x", Maybe),
        ("apt install *", "apt-get -y install x", Maybe),
        ("git push *", "Git push", Maybe),
        // Words in front of the program.
        ("git push *", "env git push", Maybe),
        ("git push *", "command git push", Maybe),
        ("git push *", "env A=b git -C x push", Maybe),
        ("git push *", "timeout 5 nice -n 5 git --no-pager push", Maybe),
        ("git push *", "git submodule foreach git -C x push", Maybe),
        // Opaque lines.
        ("git push *", "true; git -C x push", Yes),
        ("git push *", "A=b git --no-pager push", Yes),
        ("git push *", "(git-push)", Yes),
        ("git push *", "sh -c 'git -C . push'", Yes),
        // Options of the pattern, at any position and in any spelling.
        ("git push --force *", "git push origin --force", Maybe),
        ("git push --force *", "git -C x push --forc", Maybe),
        ("git push -f *", "git push -uf origin", Maybe),
        ("git push --force *", "git push origin", No),
        ("rm -rf *", "rm -r -f x", Maybe),
        ("rm -rf *", "rm -fr x", Maybe),
        ("rm -rf *", "rm -r x", No),
        ("python -m twine *", "python -B -m twine upload", Maybe),
    ];
    for (pattern, line, expected) in table {
        for verdict in [Verdict::Ask, Verdict::Deny] {
            assert_eq!(on(pattern, line, verdict), expected, "{pattern} on {line}");
        }
        let plain = SimpleCommand::parse(line).is_some();
        let allows = on(pattern, line, Verdict::Allow) == PatternMatch::Yes;
        assert!(
            !allows || plain && expected == PatternMatch::Yes && pattern == line,
            "an allow is for what is written: {pattern} on {line}"
        );
    }
}

#[test]
fn a_line_of_many_words_is_decided_soon_and_never_let_through() {
    let started = std::time::Instant::now();
    let deny = |line: &str| on("git push *", line, Verdict::Deny);
    assert_eq!(deny(&("git -a ".repeat(18_000) + "push")), PatternMatch::Maybe);
    assert_eq!(deny(&("x ".repeat(60_000) + "git push")), PatternMatch::Maybe);
    assert_eq!(deny(&("git ".to_owned() + &"-v ".repeat(40_000) + "push")), PatternMatch::Maybe);
    assert_eq!(deny(&("git-a ".repeat(20_000) + "; git push")), PatternMatch::Yes);
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn a_program_that_is_denied_by_its_path_is_denied_by_every_spelling_of_it() {
    let table = [
        ("scripts/release *", "scripts/release x", PatternMatch::Yes),
        ("scripts/release *", "./scripts/release", PatternMatch::Yes),
        ("scripts/release *", "scripts//release x", PatternMatch::Yes),
        ("scripts/release *", "scripts/../scripts/release", PatternMatch::Yes),
        ("scripts/release *", "sh scripts/release", PatternMatch::Maybe),
        ("scripts/release *", "release", PatternMatch::Maybe),
        ("scripts/release *", "scripts/released", PatternMatch::No),
        ("./deploy.sh *", "././deploy.sh now", PatternMatch::Yes),
        ("./deploy.sh *", "deploy.sh", PatternMatch::Yes),
        ("./deploy.sh *", "sh deploy.sh", PatternMatch::Maybe),
        ("./deploy.sh *", "true; ././deploy.sh", PatternMatch::Yes),
        ("/usr/bin/git push *", "git push", PatternMatch::Maybe),
        ("/usr/bin/git push *", "/usr/bin/../bin/git push", PatternMatch::Yes),
        ("/usr/bin/git push *", "git pull", PatternMatch::No),
        ("../tool", "../../tool", PatternMatch::Maybe),
    ];
    for (pattern, line, expected) in table {
        assert_eq!(on(pattern, line, Verdict::Deny), expected, "{pattern} on {line}");
        assert_eq!(on(pattern, line, Verdict::Ask), expected, "{pattern} on {line}");
    }
    for line in ["./scripts/release", "scripts//release", "release"] {
        assert_eq!(
            on("scripts/release *", line, Verdict::Allow),
            PatternMatch::No,
            "an allow is for what is written: {line}"
        );
    }
}

#[test]
fn a_pattern_that_never_matches_is_an_error() {
    let problem = |text| CommandPattern::parse(text).unwrap_err().to_string();
    assert!(problem("").contains("use `*` to cover every command"));
    assert!(problem("git status; x").contains("';'"));
    assert!(problem("echo $HOME").contains("'$'"));
    assert!(problem("A=b git").contains("sets a variable"));
    assert!(problem("git push **").contains(
        "`git push **` is not a command pattern: `**` is not \
        supported"
    ));
    assert!(problem("** x").contains("is not supported"));
}

#[test]
fn a_program_of_a_pattern_with_a_star_is_found_at_any_position() {
    let table = [
        ("g*t push *", "git push", PatternMatch::Yes),
        ("g*t push *", "env git push", PatternMatch::Maybe),
        ("g*t push *", "env git pull", PatternMatch::No),
        ("g*t push *", "env true; git -C . push", PatternMatch::Yes),
    ];
    for (pattern, line, expected) in table {
        assert_eq!(on(pattern, line, Verdict::Deny), expected, "{pattern} on {line}");
    }
}

#[test]
fn another_command_of_the_program_in_an_opaque_line_might_match() {
    for line in ["git status | wc", "true; git status", "A=b git status", "git status; cat push"] {
        assert_eq!(on("git push *", line, Verdict::Deny), PatternMatch::Maybe, "{line}");
    }
}

#[test]
fn the_number_of_other_commands_in_a_line_does_not_matter() {
    let line = "x ".repeat(2_000) + "; git -C . push";
    assert_eq!(on("git push *", &line, Verdict::Deny), PatternMatch::Yes);
}

#[test]
fn an_alias_on_a_line_matters_only_to_the_program_of_the_pattern() {
    let deny = |line| on("git push *", line, Verdict::Deny);
    assert_eq!(deny("env GIT_ALIAS=x git status"), PatternMatch::Maybe);
    assert_eq!(deny("env CARGO_ALIAS=x cargo test"), PatternMatch::No);
    assert_eq!(deny("env CARGO_ENV=x git status"), PatternMatch::No);
    let deny = |line| on("g*t push *", line, Verdict::Deny);
    assert_eq!(deny("env GIT_ALIAS=x git status"), PatternMatch::Maybe);
    assert_eq!(deny("env CARGO_ALIAS=x cargo test"), PatternMatch::No);
}

#[test]
fn a_path_is_normalized_by_its_text() {
    let table = [
        ("a", "a"),
        ("./a", "a"),
        ("a//b/", "a/b"),
        ("a/./b", "a/b"),
        ("a/../b", "b"),
        ("a/b/../..", ""),
        ("a/../../b", "../b"),
        ("../a", "../a"),
        ("../../a", "../../a"),
        ("/a/../b", "/b"),
        ("/", "/"),
        (".", ""),
        ("a..b", "a..b"),
    ];
    for (path, expected) in table {
        assert_eq!(clean_path(path), expected, "{path}");
    }
}

#[test]
fn a_line_of_more_than_1024_words_is_uncertain() {
    let deny = |words| on("git push *", &vec!["x"; words].join(" "), Verdict::Deny);
    assert_eq!(deny(1024), PatternMatch::No);
    assert_eq!(deny(1025), PatternMatch::Maybe);
}

#[test]
fn a_program_is_found_at_the_end_of_a_long_path() {
    let path = "a/".repeat(200);
    for line in [
        format!("git -c core.pager={path}rm log"),
        format!("gcc -wrapper {path}rm,x"),
        format!("gcc --wrapper={path}rm,x"),
        format!("git -c core.pager=/{}/rm log", "a".repeat(254 - 4)),
    ] {
        assert_eq!(on("rm *", &line, Verdict::Deny), PatternMatch::Maybe, "{line}");
    }
    let other = format!("git -c core.pager={path}farm log");
    assert_eq!(on("rm *", &other, Verdict::Deny), PatternMatch::No);
}

#[test]
fn a_part_of_a_word_is_a_program_only_behind_a_separator_or_an_option_letter() {
    let table = [
        ("rm *", "x a,rm", PatternMatch::Maybe),
        ("rm *", "x -Wrm,b", PatternMatch::Maybe),
        ("rm *", "x farm,y", PatternMatch::No),
        ("rm *", "x -Wa,farm,b", PatternMatch::No),
        ("rm *", "x --farm,y", PatternMatch::No),
        ("rm *", "x --farm", PatternMatch::No),
        // The first word is the program as a whole.
        ("git push *", "x:git push", PatternMatch::No),
        ("git push *", "git,push", PatternMatch::No),
        // Nothing between two separators is no program.
        ("* push *", "x ,push", PatternMatch::No),
    ];
    for (pattern, line, expected) in table {
        assert_eq!(on(pattern, line, Verdict::Deny), expected, "{pattern} on {line}");
    }
}
