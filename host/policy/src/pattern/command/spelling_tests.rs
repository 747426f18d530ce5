//! Tests of commands in spellings that a rule does not name. None of them bypasses the rule.

use super::*;

pub(super) fn on(pattern: &str, line: &str) -> PatternMatch {
    let pattern = CommandPattern::parse(pattern).expect(pattern);
    let [ask, deny] = [Verdict::Ask, Verdict::Deny].map(|verdict| pattern.matches(line, verdict));
    assert_eq!(ask, deny, "{line}");
    deny
}

#[track_caller]
pub(super) fn none_passes(table: &[(&str, &[&str])]) {
    for (pattern, lines) in table {
        for line in *lines {
            assert!(on(pattern, line) > PatternMatch::No, "`{line}` passes `{pattern}`");
            let allow =
                CommandPattern::parse(pattern).expect(pattern).matches(line, Verdict::Allow);
            assert_eq!(
                allow,
                PatternMatch::No,
                "an allow is for what is written: `{line}` by `{pattern}`"
            );
        }
    }
}

#[test]
fn r035_a_program_that_is_written_in_one_word_with_an_option_is_found() {
    none_passes(&[
        (
            "git push *",
            &[
                "env -Sgit push",
                "env -iSgit push",
                "env --split-string=git push",
                "env --split-string='git push'",
                "env -S/usr/bin/git push",
                "sudo -ubob git push",
                "nice -n5 git push",
            ],
        ),
        (
            "rm *",
            &[
                "git grep -Orm x",
                "git grep --open-files-in-pager=rm",
                "git difftool -xrm",
                "git difftool --extcmd=rm",
                "tar -xf a --to-command=rm",
                "tar -xf a --checkpoint-action=exec=rm",
                "tar -Irm -xf a",
                "tar -xIrm a",
                "tar --use-compress-program=rm -xf a",
                "tar --rsh-command=rm -xf h:a",
                "rsync -erm a h:b",
                "git -c core.pager=rm log",
                "git -c core.sshCommand=rm fetch",
                "git -c core.editor=/bin/rm commit",
                "env GIT_PAGER=rm git log",
                "env GIT_SSH_COMMAND=rm git fetch",
                "split --filter=rm a",
                "sort --compress-program=rm a",
                "cargo --config build.rustc-wrapper=rm build",
                "env RUSTC_WRAPPER=rm cargo build",
                "ssh -oProxyCommand=rm h",
                "ssh -o ProxyCommand=rm h",
                "man -Prm x",
                "man --pager=rm x",
                "zip -TTrm a b",
                "scp -Srm a h:b",
                "wget --use-askpass=rm x",
                "rg --pre=rm x",
                "fd -xrm",
                "fd -Xrm",
                "make SHELL=rm",
                "make CC=/bin/rm",
                "su -crm",
                "script -crm x",
                "script --command=rm",
                "socat - EXEC:rm,pty",
                "git clone ext::rm",
                "flock -crm x",
            ],
        ),
        (
            "pip install *",
            &[
                "python3 -mpip install x",
                "python -Impip install x",
                "python -I -mpip install x",
                "python3.11 -mpip -q install x",
            ],
        ),
        (
            "python3 -m pip *",
            &[
                "python3 -mpip install",
                "python -Impip list",
                "python3 -B -mpip list",
                "sudo python3 -mpip list",
            ],
        ),
        (
            "python3 -m http.server *",
            &["python3 -mhttp.server", "python3 -Imhttp.server 80", "python3 -I -m http.server"],
        ),
    ]);
}

#[test]
fn r035_a_program_that_another_one_runs_is_found() {
    none_passes(&[
        (
            "rm *",
            &[
                "command rm x",
                "nice rm x",
                "timeout 5 rm x",
                "xargs rm",
                "parallel rm",
                "sudo -u x rm a",
                "doas rm x",
                "env A=b rm x",
                "busybox rm x",
                "toybox rm x",
                "nohup rm x",
                "setsid rm x",
                "stdbuf -oL rm x",
                "time rm x",
                "watch rm x",
                "ssh host rm x",
                "su -c rm",
                "script -c rm",
                "flock x rm",
                "strace rm x",
                "unshare rm x",
                "chroot x rm",
                "ionice -c3 rm x",
                "taskset 1 rm x",
                "chrt 1 rm x",
                "prlimit rm x",
                "systemd-run rm x",
                "find q -exec rm",
                "find q -execdir rm",
                "find q -ok rm",
                "find q -okdir rm",
                "fd -x rm",
                "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
                "git submodule foreach rm x",
                "git bisect run rm x",
                "git rebase -x rm",
                "git rebase --exec rm",
                "git rebase --exec=rm",
                "git filter-branch --tree-filter rm",
                "git filter-branch --index-filter=rm",
                "git difftool -x rm",
                "cmake -E rm x",
                "cmake -E remove x",
                "tmux new rm",
                "ctags --options=rm",
                "man -P rm x",
                "find q -name a -delete",
                "sudo find q -delete",
                "git for-each-repo --config=a rm",
            ],
        ),
        (
            "find * -delete",
            &[
                "find q -name a -delete",
                "find -delete",
                "find q r -delete",
                "sudo find q -type f -delete",
            ],
        ),
        ("rm -rf *", &["find q -delete"]),
        (
            "git push *",
            &[
                "git for-each-repo --config=a push",
                "git for-each-repo --config a push",
                "git subtree push --prefix=a b",
                "git submodule foreach git push",
                "git bisect run git push",
                "git -C x --git-dir=y push",
                "command git push",
                "xargs git",
                "xargs -a f git",
                "git lfs push",
            ],
        ),
        (
            "cargo publish *",
            &[
                "cargo --config alias.z=publish z",
                "cargo --config x.toml z",
                "cargo --config x.toml clippy",
                "env CARGO_ALIAS_CLIPPY=publish cargo clippy",
            ],
        ),
    ]);
}

#[test]
fn r035_a_line_that_takes_code_might_run_anything() {
    none_passes(&[(
        "git push *",
        &[
            "perl -e exec+rm",
            "perl -eexec+rm",
            "perl -ne x",
            "python3 -c x",
            "node -e x",
            "node --eval=x",
            "node -p x",
            "ruby -e x",
            "php -r x",
            "lua -e x",
            "awk 'BEGIN{system(\"rm\")}'",
            "sed 's/x/y/e' a",
            "sed 1erm a",
            "sed -n -e 1erm a",
            "sed s,x,y,e a",
            "less +!rm a",
            "less +x a",
            "vim -c '!rm'",
            "vim -c x",
            "vim +x",
            "emacs --eval x",
            "make --eval=x",
            "sudo perl -e x",
            "env python3 -c x",
            "timeout 5 node -e x",
            "GIT_SSH_COMMAND=x git fetch",
            "PAGER=x man y",
            "GIT_PAGER=x git log",
            "xargs -a f env",
            "pwsh -enc cm0=",
            "deno eval x",
            "gdb -ex x",
        ],
    )]);
}

#[test]
fn r035_an_option_is_found_in_each_of_its_spellings() {
    none_passes(&[
        (
            "rm -rf *",
            &[
                "rm -r --force x",
                "rm -Rf x",
                "rm -f -r x",
                "rm --recursive --force x",
                "rm --rec --forc x",
                "rm -vR -f x",
                "sudo rm -r --force x",
            ],
        ),
        ("rm --recursive *", &["rm -r x", "rm -fR x", "rm --recur x"]),
        ("cp -r *", &["cp -a x y", "cp --recursive x y", "cp -pR x y", "cp --archive x y"]),
        ("mv -f *", &["mv --force x y", "mv -vf x y"]),
        ("chmod -R *", &["chmod --recursive 7 x", "chmod -vR 7 x"]),
        ("chown -R *", &["chown --recur a x"]),
        (
            "git push --force *",
            &[
                "git push -f",
                "git push origin -f",
                "git push --forc",
                "git push --force-with-lease",
                "git push -uf x",
                "git push origin +main",
                "git push --mirror x",
                "git -c remote.o.push=+x push",
            ],
        ),
        ("git push -f *", &["git push --force", "git push origin +a:b"]),
        ("git push --delete *", &["git push -d origin a", "git push origin :a"]),
        ("git clean -fd *", &["git clean -f -d", "git clean -d --force", "git clean -dxf"]),
        (
            "git reset --hard *",
            &["git reset x --hard", "git reset --har", "git -C x reset -q --hard"],
        ),
        ("git branch -D *", &["git branch --delete --force x", "git branch -df x"]),
        ("docker rm -f *", &["docker rm --force x", "docker container rm -f x", "docker rm -vf x"]),
        (
            "kubectl delete --all *",
            &["kubectl delete pod --all", "kubectl -n x delete --all=true pod"],
        ),
        (
            "npm install -g *",
            &["npm install --global x", "npm i -g x", "npm install --location=global x"],
        ),
        ("mytool --force *", &["mytool -f x", "mytool -xf", "mytool --forc"]),
        ("mytool -f *", &["mytool --force x"]),
        (
            "terraform apply -auto-approve *",
            &["terraform apply --auto-approve", "terraform -chdir=x apply -auto-approve"],
        ),
        (
            "npm publish",
            &[
                "npm publish --access=public",
                "npm publish --access public",
                "npm --prefix x publish --tag y",
            ],
        ),
        ("reboot", &["reboot -f", "reboot --force"]),
        ("kill -9 *", &["kill -KILL 1", "kill -s KILL 1"]),
    ]);
}

#[test]
fn a_rule_about_another_command_does_not_match() {
    let table: &[(&str, &[&str])] = &[
        (
            "git push *",
            &[
                "git log --oneline",
                "git status",
                "git grep -n push",
                "ls -la src",
                "cargo test push",
                "git commit -am push",
                "rg push src",
                "git stash push",
                "git help push",
                "git -C push status",
                "python3 -m pytest",
                "tar -xf a.tar",
                "find src -name a.rs",
                "sed -n 1,20p src/main.rs",
                "docker run -it node",
            ],
        ),
        (
            "rm *",
            &[
                "find q -perm 644",
                "ls -la",
                "git rebase main",
                "cargo test --lib",
                "git grep farm",
                "npm run build",
                "tar -xf a.tar.gz",
                "go test -rm",
            ],
        ),
        ("rm -rf *", &["rm x", "rm -r x", "rm -f x", "rm -v --force x"]),
        (
            "git push --force *",
            &["git push", "git push origin main", "git push --follow-tags", "git push -u origin x"],
        ),
        ("git commit --amend *", &["git commit -am x", "git commit -m x", "git commit --all"]),
        ("git reset --hard *", &["git reset", "git reset HEAD x", "git reset --soft x"]),
        (
            "cargo publish *",
            &[
                "cargo clippy",
                "cargo fmt",
                "cargo test --lib",
                "cargo nextest run",
                "cargo +nightly miri test",
                "cargo test --test alias.rs",
            ],
        ),
        ("npm publish", &["npm test", "npm publish x"]),
        ("pip install *", &["python3 -m pytest", "pip list", "python3 -mpip list"]),
        ("find * -delete", &["find q -name a", "find q"]),
        ("git push", &["git push origin", "git pull"]),
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
