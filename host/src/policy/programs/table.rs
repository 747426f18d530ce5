//! The table of programs with subcommands.

use super::{Program, Quirk};

/// A program of which nothing is known but its name.
const PLAIN: Program = Program {
    name: "",
    also: "",
    valued: "",
    flags: "",
    groups: "",
    implied: "",
    explicit: "",
    synonyms: "",
    settings: "",
    own: "",
    external: "",
    bounded: "",
    unbounded_by: "",
    quirk: Quirk::None,
};

/// All of them.
pub(in crate::policy) const PROGRAMS: &[Program] = &[
    Program {
        name: "git",
        valued: "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
        flags: "-v --version -h --help -p --paginate -P --no-pager --no-replace-objects --no-lazy-fetch --no-optional-locks \
            --no-advice --bare --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --exec-path \
            --html-path --man-path --info-path",
        // `git subtree push` pushes, and `git for-each-repo --config=x push` does so in many repositories.
        groups: "subtree for-each-repo",
        synonyms: "push send-pack http-push | add stage | fetch fetch-pack",
        settings: "-c --config-env",
        own: GIT,
        bounded: "add blame describe diff log ls-files rev-parse shortlog show status",
        // They write a file, or run what the settings name.
        unbounded_by: "--ou --ext --textc",
        quirk: Quirk::Joined,
        ..PLAIN
    },
    Program {
        name: "cargo",
        valued: "-C -Z --color --config --explain",
        flags: "-v -vv -q -h -V --verbose --quiet --locked --offline --frozen --help --version --list",
        synonyms: "build b | check c | doc d | run r | test t | remove rm",
        settings: "--config -Z",
        own: "add b bench build c check clean config d doc fetch fix generate-lockfile git-checkout help info init install \
            locate-project login logout metadata new owner package pkgid publish r read-manifest remove report rm run rustc \
            rustdoc search t test tree uninstall update vendor verify-project version yank",
        external: "audit clippy deny fmt fuzz llvm-cov machete miri nextest outdated release xtask",
        // `--open` runs what the settings name.
        bounded: "bench build check doc fmt metadata test tree clippy",
        unbounded_by: "--config -Z -C --manifest-path --fix --open",
        quirk: Quirk::Toolchain,
        ..PLAIN
    },
    Program { name: "rustup", flags: "-v -q --verbose --quiet", synonyms: "update upgrade", quirk: Quirk::Toolchain, ..PLAIN },
    Program {
        name: "npm",
        // A flag may take a `true` or `false` that follows it, so that none is known to stand alone.
        valued: "-C --prefix --registry --userconfig --globalconfig --cache --loglevel -w --workspace --tag --otp --access \
            --scope --script-shell",
        synonyms: "install i add in ins inst insta instal isnt isntall | uninstall un unlink remove rm r | run run-script rum urn \
            | exec x | update up upgrade udpate | ci clean-install ic install-clean | test tst t | view info show v | list \
            ls la ll | link ln | owner author | config c set get",
        ..PLAIN
    },
    Program {
        name: "pnpm",
        valued: "-C --dir -F --filter --filter-prod --loglevel --reporter --store-dir",
        flags: "-r --recursive -w --workspace-root -s --silent --offline --stream --aggregate-output",
        groups: "run run-script",
        implied: "run run-script",
        explicit: "add approve-builds audit bin cat-file cat-index config create dedupe deploy dlx doctor env exec fetch find-hash \
            help i import info init install install-test la licenses link list ll ln ls outdated pack patch patch-commit \
            patch-remove prune publish rb rebuild remove rm root self-update server setup store un uninstall unlink up update \
            upgrade view why",
        synonyms: "install i | remove rm uninstall un | run run-script | update up upgrade",
        ..PLAIN
    },
    Program {
        name: "yarn",
        also: "yarnpkg",
        valued: "--cwd --registry",
        flags: "-s --silent --verbose --json",
        groups: "run",
        implied: "run",
        explicit: "add audit autoclean bin cache config constraints create dedupe dlx exec explain global help import info init \
            install licenses link list login logout node npm outdated owner pack patch patch-commit plugin policies prune publish \
            rebuild remove search set stage tag team unlink unplug up upgrade upgrade-interactive version versions why workspace \
            workspaces",
        synonyms: "upgrade up",
        ..PLAIN
    },
    Program {
        name: "bun",
        valued: "--cwd --config",
        flags: "--silent --bun -b",
        groups: "run",
        implied: "run",
        explicit: "a add audit build c create exec help i info init install link list outdated patch patch-commit pm publish r remove \
            repl rm test unlink update upgrade why x",
        synonyms: "add a | install i | remove r rm | create c",
        ..PLAIN
    },
    Program { name: "deno", flags: "-q --quiet", ..PLAIN },
    Program {
        name: "docker",
        valued: "-c --config --context -H --host -l --log-level --tlscacert --tlscert --tlskey",
        flags: "-D --debug --tls --tlsverify -v --version",
        groups: "container image buildx builder",
        implied: "container image",
        explicit: OTHER_OBJECTS,
        synonyms: "rmi rm remove | ps ls list",
        bounded: "images ps",
        ..PLAIN
    },
    Program {
        name: "podman",
        valued: "-c --connection --url --identity --root --runroot --storage-driver --storage-opt --log-level --cgroup-manager \
            --conmon --runtime --tmpdir --module",
        flags: "-r --remote --syslog --noout -v --version",
        groups: "container image",
        implied: "container image",
        explicit: OTHER_OBJECTS,
        synonyms: "rmi rm remove | ps ls list",
        bounded: "images ps",
        ..PLAIN
    },
    Program {
        name: "kubectl",
        also: "oc k3s-kubectl",
        valued: "-n --namespace --context --cluster --user --kubeconfig -s --server --token --as --as-group --as-uid \
            --request-timeout --cache-dir --certificate-authority --client-certificate --client-key --tls-server-name \
            --username --password -v --v --vmodule --profile --profile-output",
        flags: "--insecure-skip-tls-verify --match-server-version --warnings-as-errors --disable-compression",
        ..PLAIN
    },
    Program {
        name: "helm",
        valued: "-n --namespace --kube-context --kubeconfig --kube-apiserver --kube-token --kube-as-user --kube-as-group \
            --kube-ca-file --registry-config --repository-cache --repository-config --burst-limit --qps",
        flags: "--debug",
        synonyms: "uninstall delete del un | list ls",
        ..PLAIN
    },
    Program {
        name: "pip",
        valued: "--python --log --proxy --retries --timeout --exists-action --trusted-host --cert --client-cert --cache-dir \
            --keyring-provider",
        flags: "--isolated -v -q --verbose --quiet --require-virtualenv --no-input --no-color --no-cache-dir",
        bounded: "check freeze list show",
        // `--log` writes a file; `--python` and `--keyring-provider` run a program. Options may be shortened.
        unbounded_by: "--l --p --k",
        ..PLAIN
    },
    Program {
        name: "uv",
        valued: "--directory --project --config-file --cache-dir --color --allow-insecure-host",
        flags: "-q -v -n --quiet --verbose --no-cache --offline --no-config --no-progress --native-tls",
        ..PLAIN
    },
    Program {
        name: "poetry",
        valued: "-C --directory -P --project",
        flags: "-n -q -v -vv -vvv --no-interaction --no-plugins --no-cache --ansi --no-ansi",
        ..PLAIN
    },
    Program {
        name: "go",
        valued: "-C",
        bounded: "build list test vet version",
        // Each of them, also with two hyphens, runs a program, writes a file or puts other sources in place of these.
        unbounded_by: "-exec --exec -toolexec --toolexec -vettool --vettool -overlay --overlay -modfile --modfile -o --o -C --C \
            -ldflags --ldflags -gcflags --gcflags -asmflags --asmflags -gccgoflags --gccgoflags -compiler --compiler -pkgdir --pkgdir \
            -coverprofile --coverprofile -cpuprofile --cpuprofile -memprofile --memprofile -blockprofile --blockprofile \
            -mutexprofile --mutexprofile -trace --trace -outputdir --outputdir -test. --test. -fuzz --fuzz -c --c",
        ..PLAIN
    },
    Program { name: "gh", valued: "-R --repo --hostname", ..PLAIN },
    Program { name: "glab", valued: "-R --repo", ..PLAIN },
    Program {
        name: "systemctl",
        valued: "-H --host -M --machine -t --type -p --property -s --signal -n --lines -o --root",
        flags: "--user --system --global --no-pager --no-block --now -q --quiet -f --force --no-ask-password",
        ..PLAIN
    },
    Program {
        name: "apt",
        also: "apt-get aptitude",
        valued: "-o --option -c --config-file -t --target-release",
        flags: "-y --yes --assume-yes -q -qq --quiet -s --dry-run -f -d -m --no-install-recommends",
        synonyms: "upgrade full-upgrade dist-upgrade | remove purge",
        ..PLAIN
    },
    Program { name: "dnf", also: "yum microdnf", valued: "-c --config --installroot --releasever", flags: "-y -q", ..PLAIN },
    Program { name: "brew", flags: "-v -d -q --verbose --debug --quiet", synonyms: "uninstall remove rm | list ls", ..PLAIN },
    Program { name: "terraform", also: "tofu terragrunt", ..PLAIN },
    Program { name: "pulumi", valued: "-C --cwd --color -v --verbose", flags: "--non-interactive --logtostderr", ..PLAIN },
    Program {
        name: "aws",
        valued: "--profile --region --endpoint-url --output --query --color --ca-bundle --cli-read-timeout \
            --cli-connect-timeout --cli-binary-format",
        flags: "--debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager --no-cli-auto-prompt",
        ..PLAIN
    },
    Program {
        name: "gcloud",
        valued: "--project --account --configuration --billing-project --impersonate-service-account --access-token-file \
            --format --verbosity --flags-file --trace-token",
        flags: "-q --quiet --log-http --no-log-http --user-output-enabled --no-user-output-enabled",
        groups: "alpha beta preview",
        ..PLAIN
    },
    Program { name: "az", valued: "--subscription -o --output --query", flags: "--debug --verbose --only-show-errors", ..PLAIN },
    Program {
        name: "hg",
        valued: "-R --repository --cwd --config --color --encoding --pager",
        flags: "-y --noninteractive -q --quiet -v --verbose --traceback --debug --profile --hidden",
        synonyms: "commit ci | update up checkout co | remove rm | rename move mv | copy cp | log history | status st | summary sum \
            | annotate blame | identify id | forget drop",
        settings: "--config",
        ..PLAIN
    },
    Program {
        name: "jj",
        valued: "-R --repository --at-operation --at-op --color --config --config-file",
        flags: "--ignore-working-copy --ignore-immutable --debug --quiet --no-pager",
        settings: "--config --config-file --config-toml",
        ..PLAIN
    },
    Program {
        name: "svn",
        valued: "--username --password --config-dir --config-option",
        flags: "--non-interactive --no-auth-cache --trust-server-cert",
        synonyms: "commit ci | delete del remove rm | checkout co | update up | switch sw",
        ..PLAIN
    },
    Program { name: "bundle", also: "bundler", flags: "--no-color -V --verbose -r", ..PLAIN },
    Program { name: "gem", valued: "--config-file", flags: "--no-verbose --norc", ..PLAIN },
    Program {
        name: "composer",
        valued: "-d --working-dir",
        flags: "-q -v -vv -vvv -n --no-interaction",
        synonyms: "run-script run | install i | update u upgrade | require r | remove rm uninstall",
        ..PLAIN
    },
    Program {
        name: "ip",
        valued: "-n -ne -netns -f -family -b -batch -l -loops -rc -rcvbuf",
        flags: "-s -stats -statistics -d -details -r -resolve -4 -6 -B -0 -M -o -oneline -t -timestamp -ts -N -a -all -c -color -br \
            -brief -j -json -p -pretty -h -human -V -Version",
        synonyms: "address addr | neighbor neighbour | show list lst",
        quirk: Quirk::Abbreviated,
        ..PLAIN
    },
    Program { name: "tc", valued: "-n -netns -b -batch -cf -conf", quirk: Quirk::Abbreviated, ..PLAIN },
    Program { name: "bridge", valued: "-n -netns -b -batch", quirk: Quirk::Abbreviated, ..PLAIN },
    Program { name: "devlink", quirk: Quirk::Abbreviated, ..PLAIN },
    Program {
        name: "nmcli",
        valued: "-f --fields -g --get-values -w --wait -e --escape -c --colors -m --mode",
        flags: "-t --terse -p --pretty -a --ask -s --show-secrets -o --overview",
        quirk: Quirk::Abbreviated,
        ..PLAIN
    },
    Program { name: "dotnet", flags: "-d --diagnostics", ..PLAIN },
    Program { name: "swift", ..PLAIN },
    Program { name: "zig", ..PLAIN },
    Program { name: "nix", valued: "--extra-experimental-features --store", flags: "-v -L --offline --impure", ..PLAIN },
    Program {
        name: "make",
        also: "gmake bmake",
        valued: "-C --directory -f --file --makefile -I --include-dir -o --old-file -W --what-if",
        flags: "-B -k -n -s -i -e -r -R -w -q -t --silent --always-make --keep-going --dry-run",
        quirk: Quirk::Several,
        ..PLAIN
    },
    Program { name: "just", valued: "-f --justfile -d --working-directory --shell", quirk: Quirk::Several, ..PLAIN },
    Program { name: "ninja", valued: "-C -f -j -k -l -d -t -w", quirk: Quirk::Several, ..PLAIN },
    Program { name: "task", also: "go-task", valued: "-d --dir -t --taskfile", quirk: Quirk::Several, ..PLAIN },
    Program { name: "rake", quirk: Quirk::Several, ..PLAIN },
    Program { name: "mix", ..PLAIN },
    Program { name: "gradle", also: "gradlew", valued: "-p --project-dir -b -c -g -I -x", quirk: Quirk::SeveralOfProjects, ..PLAIN },
    Program { name: "mvn", also: "mvnw", valued: "-f --file -s --settings -pl -P -rf", quirk: Quirk::SeveralOfProjects, ..PLAIN },
];

/// Subcommands of docker and podman that are about something else than containers and images.
const OTHER_OBJECTS: &str = "builder buildx checkpoint compose config context generate healthcheck info kube login logout machine \
    manifest network node plugin pod scout search secret service stack swarm system trust version volume";

/// The commands that git brings along: no alias takes their place.
const GIT: &str = "add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore \
    check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit \
    commit-graph commit-tree config count-objects credential describe diagnose diff diff-files diff-index \
    diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref \
    for-each-repo format-patch fsck gc get-tar-commit-id grep hash-object help hook http-push index-pack init \
    init-db interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base \
    merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects \
    pack-redundant pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase receive-pack reflog \
    refs remote repack replace replay request-pull rerere reset restore rev-list rev-parse revert rm send-email \
    send-pack shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace \
    submodule subtree switch symbolic-ref tag unpack-file unpack-objects update-index update-ref \
    update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag version whatchanged \
    worktree write-tree";
