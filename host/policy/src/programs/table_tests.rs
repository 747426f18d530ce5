//! Tests of the table of programs, with an example of each list of each program.

use super::*;
use crate::{CommandPattern, PatternMatch, Verdict};

fn on(pattern: &str, line: &str) -> PatternMatch {
    CommandPattern::parse(pattern).expect(pattern).matches(line, Verdict::Deny)
}

#[test]
fn each_program_is_found_by_its_name() {
    for program in PROGRAMS {
        assert!(!program.name.is_empty(), "{program:?}");
        assert!(
            ProgramSyntax::find(program.name).is_some_and(|found| found.name == program.name),
            "{}",
            program.name
        );
    }
}

#[test]
fn a_program_with_another_name_has_the_same_subcommands() {
    let table = [
        ("yarn", "yarnpkg"),
        ("kubectl", "oc"),
        ("apt", "apt-get"),
        ("dnf", "yum"),
        ("terraform", "tofu"),
        ("bundle", "bundler"),
        ("make", "gmake"),
        ("task", "go-task"),
        ("gradle", "gradlew"),
        ("mvn", "mvnw"),
    ];
    for (name, other) in table {
        assert_eq!(
            on(&format!("{name} deploy *"), &format!("{other} deploy x")),
            PatternMatch::Maybe,
            "{other}"
        );
    }
}

#[test]
fn known_options_before_a_subcommand_leave_one_reading() {
    let table = [
        ("git", "-C x --no-pager"),
        ("cargo", "--color x --locked"),
        ("rustup", "--quiet"),
        ("npm", "--prefix x"),
        ("pnpm", "--filter x -r"),
        ("yarn", "--cwd x --silent"),
        ("bun", "--cwd x --silent"),
        ("deno", "--quiet"),
        ("docker", "--context x --debug"),
        ("podman", "--url x --remote"),
        ("kubectl", "-n x --warnings-as-errors"),
        ("helm", "--kube-context x --debug"),
        ("pip", "--proxy x --isolated"),
        ("uv", "--directory x --offline"),
        ("poetry", "-C x --no-plugins"),
        ("go", "-C x"),
        ("gh", "-R x"),
        ("glab", "-R x"),
        ("systemctl", "-H x --now"),
        ("apt", "-t x -y"),
        ("dnf", "--releasever x -y"),
        ("brew", "--quiet"),
        ("pulumi", "-C x --non-interactive"),
        ("aws", "--profile x --debug"),
        ("gcloud", "--project x --quiet"),
        ("az", "--subscription x --verbose"),
        ("hg", "--cwd x --quiet"),
        ("jj", "-R x --quiet"),
        ("svn", "--username x --non-interactive"),
        ("bundle", "--no-color"),
        ("gem", "--config-file x --norc"),
        ("composer", "-d x --no-interaction"),
        ("ip", "-n x -json"),
        ("tc", "-n x"),
        ("bridge", "-n x"),
        ("nmcli", "-f x --terse"),
        ("dotnet", "--diagnostics"),
        ("nix", "--store x --offline"),
        ("make", "-C x -k"),
        ("just", "-f x"),
        ("ninja", "-C x"),
        ("task", "-d x"),
        ("gradle", "-p x"),
        ("mvn", "-f x"),
    ];
    for (program, options) in table {
        let (pattern, line) =
            (format!("{program} deploy *"), format!("{program} {options} deploy y"));
        assert_eq!(on(&pattern, &line), PatternMatch::Yes, "{line}");
    }
}

#[test]
fn r035_a_subcommand_with_another_name_might_match() {
    let table = [
        ("git push *", "git send-pack x"),
        ("cargo remove *", "cargo rm x"),
        ("rustup update *", "rustup upgrade"),
        ("npm uninstall *", "npm rm x"),
        ("pnpm uninstall *", "pnpm rm x"),
        ("yarn up *", "yarn upgrade x"),
        ("bun remove *", "bun rm x"),
        ("docker rmi *", "docker image remove x"),
        ("podman rmi *", "podman image remove x"),
        ("helm uninstall *", "helm delete x"),
        ("apt upgrade *", "apt dist-upgrade"),
        ("brew uninstall *", "brew rm x"),
        ("hg commit *", "hg ci"),
        ("svn commit *", "svn ci"),
        ("composer remove *", "composer rm x"),
        ("ip neighbor flush *", "ip neighbour flush x"),
        // Behind a word that changes nothing.
        ("git push *", "git subtree push x"),
        ("pnpm release *", "pnpm run release"),
        ("yarn deploy *", "yarn run deploy"),
        ("bun deploy *", "bun run deploy"),
        ("docker push *", "docker image push x"),
        ("podman push *", "podman image push x"),
        ("gcloud run deploy *", "gcloud beta run deploy x"),
        // Without a word that a line may omit.
        ("pnpm run release *", "pnpm release"),
        ("yarn run deploy *", "yarn deploy"),
        ("bun run deploy *", "bun deploy"),
        ("docker container stop *", "docker stop x"),
        ("podman container stop *", "podman stop x"),
        // As an alias, or with a setting in place of an option.
        ("git push *", "git pub"),
        ("git push --force *", "git -c remote.o.push=+x push"),
        ("cargo publish *", "cargo z"),
        ("cargo publish *", "cargo --config x clippy"),
        ("hg push --force *", "hg --config x push"),
        ("jj push --all *", "jj --config x push"),
        // Behind other subcommands.
        ("make deploy *", "make all deploy"),
        ("just deploy *", "just all deploy"),
        ("ninja deploy *", "ninja all deploy"),
        ("task deploy *", "task all deploy"),
        ("rake deploy *", "rake all deploy"),
        ("gradle deploy *", "gradle all :lib:deploy"),
        ("mvn deploy *", "mvn all lib:deploy"),
        // Abbreviated behind the first word.
        ("ip link delete *", "ip link del x"),
        ("tc qdisc delete *", "tc qdisc del x"),
        ("bridge link delete *", "bridge link del x"),
        ("devlink port delete *", "devlink port del x"),
        ("nmcli connection delete *", "nmcli connection del x"),
    ];
    for (pattern, line) in table {
        assert_eq!(on(pattern, line), PatternMatch::Maybe, "{pattern} on {line}");
    }
    for (pattern, line) in [
        ("git push *", "git-push"),
        ("cargo publish *", "cargo +nightly publish"),
        ("rustup update *", "rustup +nightly update"),
    ] {
        assert_eq!(on(pattern, line), PatternMatch::Yes, "{pattern} on {line}");
    }
}

#[test]
fn a_subcommand_of_its_own_does_not_match() {
    let table = [
        ("git push *", "git status"),
        ("cargo publish *", "cargo clippy"),
        ("cargo publish *", "cargo test"),
        ("pnpm run *", "pnpm install"),
        ("yarn run *", "yarn install"),
        ("bun run *", "bun install"),
        ("docker image rm *", "docker volume rm x"),
        ("podman image rm *", "podman volume rm x"),
        ("docker container info *", "docker info"),
        ("podman container info *", "podman info"),
        ("helm uninstall *", "helm list"),
        ("apt remove *", "apt list"),
        ("svn commit *", "svn update"),
        ("npm deploy *", "npm all deploy"),
        ("systemctl list show *", "systemctl list sh"),
    ];
    for (pattern, line) in table {
        assert_eq!(on(pattern, line), PatternMatch::No, "{pattern} on {line}");
    }
}

#[test]
fn r039_only_some_subcommands_limit_the_effects_of_a_line() {
    let table: &[(&str, &[&str], bool)] = &[
        ("git", &["log", "x"], true),
        ("git", &["log", "--output=x"], false),
        ("git", &["push"], false),
        ("cargo", &["test", "--lib"], true),
        ("cargo", &["test", "--offline", "--locked", "--target", "x", "-p", "y"], true),
        ("cargo", &["test", "--config", "x"], false),
        ("cargo", &["test", "--target-dir=src"], false),
        ("cargo", &["build", "--artifact-dir", "x"], false),
        ("cargo", &["test", "--lockfile-path", "x"], false),
        ("cargo", &["test", "--", "--logfile", "x"], false),
        ("cargo", &["test", "-vC", "x"], false),
        ("git", &["log", "--show-signature"], false),
        ("git", &["log", "--pretty=format:%GK"], false),
        ("git", &["add", "--edit"], false),
        ("docker", &["ps", "-a"], true),
        ("docker", &["run", "x"], false),
        ("podman", &["images"], true),
        ("podman", &["exec", "x"], false),
        ("pip", &["list", "--outdated"], true),
        ("pip", &["list", "--log=x"], false),
        ("go", &["test", "./..."], true),
        ("go", &["test", "-exec", "x"], false),
        ("make", &["all"], false),
    ];
    for (program, words, expected) in table {
        let program = ProgramSyntax::find(program).expect(program);
        assert_eq!(program.is_bounded(words), *expected, "{} {words:?}", program.name);
    }
}
