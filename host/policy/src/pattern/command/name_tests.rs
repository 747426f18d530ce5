//! Tests of subcommands by synonyms, options without a hyphen and files by other paths.

use super::spelling_tests::{none_passes, on};
use super::*;

#[test]
fn r035_letters_of_options_without_a_hyphen_are_found() {
    none_passes(&[
        (
            "tar -xf *",
            &["tar xf a", "tar fx a", "tar xvzf a", "tar x -f a", "sudo tar xf a", "/bin/tar xf a"],
        ),
        ("tar -x *", &["tar xf a", "tar fx a", "tar x", "tar xvzf a", "busybox tar xf a"]),
        ("tar --extract *", &["tar xf a", "tar vx"]),
        ("tar xf *", &["tar -xf a", "tar -x -f a", "tar fx a", "tar --extract --file=a"]),
        ("ar x *", &["ar xv a", "ar -x a", "ar vx a"]),
        ("ar -x *", &["ar x a", "ar xv a"]),
        ("ps e *", &["ps aux e", "ps auxe", "ps -p 1 e", "ps axe"]),
        ("ps aux", &["ps axu", "ps -aux", "ps a u x"]),
        ("jar -x *", &["jar xf a"]),
    ]);
}

#[test]
fn r035_another_name_or_a_shorter_one_of_a_subcommand_is_found() {
    none_passes(&[
        (
            "ip link delete *",
            &[
                "ip l d x",
                "ip link del x",
                "ip l delete x",
                "ip -s link d x",
                "ip -n x link del y",
                "sudo ip l d x",
            ],
        ),
        ("ip l d *", &["ip link delete x", "ip link del x"]),
        ("ip link del *", &["ip link delete x", "ip link d x"]),
        ("nmcli connection delete *", &["nmcli c d x", "nmcli con del x"]),
        (
            "yarn run deploy *",
            &["yarn deploy", "yarn deploy --x", "yarn --silent deploy", "yarn --cwd x deploy"],
        ),
        ("yarn run *", &["yarn deploy", "yarn test"]),
        ("yarn deploy *", &["yarn run deploy"]),
        ("bun run deploy *", &["bun deploy", "bun --silent deploy x"]),
        ("bun deploy *", &["bun run deploy"]),
        ("pnpm run release *", &["pnpm release", "pnpm run-script release", "pnpm -r release"]),
        ("docker rmi *", &["docker image rm x", "docker image remove x"]),
        ("docker image rm *", &["docker rmi x", "docker image remove x"]),
        ("docker image remove *", &["docker rmi x", "docker image rm x"]),
        ("docker rm *", &["docker container rm x", "docker container remove x"]),
        ("docker container rm *", &["docker rm x", "docker container remove x"]),
        ("podman rmi *", &["podman image remove x"]),
        ("hg commit *", &["hg ci -m x", "hg --cwd x ci"]),
        (
            "gradle publish *",
            &[
                "gradle :publish",
                "gradle :lib:publish",
                "gradle lib:publish",
                "gradle clean :publish",
                "gradlew :publish",
            ],
        ),
        ("gradle :publish *", &["gradle publish", "gradle :lib:publish"]),
        ("mvn deploy *", &["mvn deploy:deploy", "mvn clean deploy:deploy"]),
        (
            "terraform destroy *",
            &[
                "terraform apply -destroy",
                "terraform apply -destroy=true",
                "tofu apply --destroy",
                "terraform -chdir=x apply -destroy",
            ],
        ),
        ("terraform apply -destroy *", &["terraform destroy", "terraform destroy -auto-approve"]),
        (
            "python manage.py *",
            &[
                "python ./manage.py x",
                "python3 ./manage.py x",
                "python .//manage.py",
                "python a/../manage.py x",
                "python /w/manage.py x",
            ],
        ),
        ("python ./manage.py *", &["python manage.py x", "python ././manage.py x"]),
        ("python manage.py flush *", &["python ./manage.py flush", "python -B ./manage.py flush"]),
    ]);
}

#[test]
fn a_rule_about_another_subcommand_or_other_options_does_not_match() {
    let table: &[(&str, &[&str])] = &[
        ("tar -x *", &["tar cf a b", "tar tf a", "tar -cf x a"]),
        ("ar x *", &["ar t a", "ar rcs a y"]),
        ("ps e *", &["ps aux", "ps -f"]),
        ("ip link delete *", &["ip link show", "ip l", "ip a", "ip route"]),
        ("yarn run deploy *", &["yarn test", "yarn install", "yarn run test"]),
        ("yarn run *", &["yarn install", "yarn add x"]),
        ("docker rmi *", &["docker run x", "docker build x", "docker ps"]),
        ("docker image rm *", &["docker build x", "docker volume rm x", "docker pull x"]),
        ("hg commit *", &["hg status", "hg log"]),
        ("gradle publish *", &["gradle build", "gradle :lib:test"]),
        ("terraform destroy *", &["terraform apply", "terraform plan"]),
        (
            "python manage.py *",
            &["python src/manage.py x", "python ./other.py", "python x/manage.py.d/y"],
        ),
    ];
    for (pattern, lines) in table {
        for line in *lines {
            assert_eq!(
                on(pattern, line),
                PatternMatch::No,
                "`{line}` is asked about by `{pattern}`"
            );
        }
    }
}

#[test]
fn a_command_in_one_word_with_commas_or_colons_is_found() {
    none_passes(&[
        ("curl *", &["gcc -wrapper curl,--version x.c", "gcc -wrapper /usr/bin/curl,x x.c"]),
        (
            "git push *",
            &[
                "gcc -wrapper git,push x.c",
                "gcc -wrapper git:push x.c",
                "gcc -wrapper env,git,push x.c",
                "x --wrapper=git,push y",
                "x -Wgit,push y",
                "x git,-C,y,push",
            ],
        ),
        ("deploy *", &["run deploy,x", "run deploy:x"]),
        ("rm -rf *", &["x rm,-r,-f,y", "x rm,-rf y"]),
    ]);
    let table: &[(&str, &[&str])] = &[
        ("git push *", &["npm install a,b", "x git,pull", "ls a:b", "cargo test x::push"]),
        ("curl *", &["gcc -Wl,-rpath,x a.c", "cut -d, -f1 a"]),
    ];
    for (pattern, lines) in table {
        for line in *lines {
            assert_eq!(on(pattern, line), PatternMatch::No, "`{line}` by `{pattern}`");
        }
    }
}

#[test]
fn a_command_within_a_word_is_found_behind_each_separator_and_each_letter_of_an_option() {
    none_passes(&[(
        "git push *",
        &["x a,git,push", "x a:b,git:push y", "x --with=a,git,push", "x -abcdgit,push"],
    )]);
}

#[test]
fn a_long_path_in_the_middle_of_a_word_is_found_by_its_file_name() {
    let line = format!("x --with=/{}git=y push", "d/".repeat(150));
    none_passes(&[("git push *", &[line.as_str()])]);
    let other = format!("x --with=/{}legit=y push", "d/".repeat(150));
    assert_eq!(on("git push *", &other), PatternMatch::No);
}

#[test]
fn code_in_the_value_of_an_option_might_run_anything() {
    none_passes(&[(
        "git push *",
        &[
            "perl -Mstrict+exec+q/git/,q/push/",
            "perl -Mstrict+exec+q/gi/.q/t/,q/pus/.q/h/",
            "sudo perl -mstrict+exec+q/x/",
            "env PERL5OPT=-Mstrict+exec+q/x/ perl x.pl",
            "node --import data:text/javascript,x",
            "env NODE_OPTIONS=--import=data:x npm test",
            "deno run data:text/javascript,x",
            "php -d auto_prepend_file=x y.php",
            "python3 -m timeit x",
            "tmux send-keys g i t",
        ],
    )]);
}
