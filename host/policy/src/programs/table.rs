//! The table of programs with subcommands.

use super::{ProgramQuirk, ProgramSyntax};

/// A program without any known syntax, as the base of the entries.
const EMPTY: ProgramSyntax = ProgramSyntax {
    name: "",
    aliases: "",
    value_options: "",
    flags: "",
    groups: "",
    implied: "",
    explicit: "",
    synonyms: "",
    settings: "",
    subcommands: "",
    external: "",
    bounded: "",
    unbounding_prefixes: "",
    quirk: ProgramQuirk::None,
};

/// All known programs with subcommands.
pub(crate) const PROGRAMS: &[ProgramSyntax] = &[
    ProgramSyntax {
        name: "git",
        value_options: "-C -c --git-dir --work-tree --namespace --super-prefix --config-env \
            --attr-source",
        flags: "-v --version -h --help -p --paginate -P --no-pager --no-replace-objects \
            --no-lazy-fetch --no-optional-locks \
            --no-advice --bare --literal-pathspecs --glob-pathspecs --noglob-pathspecs \
            --icase-pathspecs --exec-path \
            --html-path --man-path --info-path",
        // `git subtree push` pushes, and `git for-each-repo --config=x push` pushes from many
        // repositories.
        groups: "subtree for-each-repo",
        synonyms: "push send-pack http-push | add stage | fetch fetch-pack",
        settings: "-c --config-env",
        subcommands: GIT_SUBCOMMANDS,
        bounded: "add blame describe diff log ls-files rev-parse shortlog show status",
        // These options write a file, or run a program from the configuration.
        unbounding_prefixes: "--ou --ext --textc --show-si -e --ed",
        quirk: ProgramQuirk::Joined,
        ..EMPTY
    },
    ProgramSyntax {
        name: "cargo",
        value_options: "-C -Z --color --config --explain",
        flags: "-v -vv -q -h -V --verbose --quiet --locked --offline --frozen --help --version \
            --list",
        synonyms: "build b | check c | doc d | run r | test t | remove rm",
        settings: "--config -Z",
        subcommands: "add b bench build c check clean config d doc fetch fix generate-lockfile \
            git-checkout help info init install \
            locate-project login logout metadata new owner package pkgid publish r read-manifest \
            remove report rm run rustc \
            rustdoc search t test tree uninstall update vendor verify-project version yank",
        external: "audit clippy deny fmt fuzz llvm-cov machete miri nextest outdated release xtask",
        // `--open` runs a program from the configuration, and others write to any place.
        bounded: "bench build check doc fmt metadata test tree clippy",
        unbounding_prefixes: "--config -Z -C --manifest-path --fix --open --target-d --artifact-d \
            --out-d --lockfile-p --timings",
        quirk: ProgramQuirk::Toolchain,
        ..EMPTY
    },
    ProgramSyntax {
        name: "rustup",
        flags: "-v -q --verbose --quiet",
        synonyms: "update upgrade",
        quirk: ProgramQuirk::Toolchain,
        ..EMPTY
    },
    ProgramSyntax {
        name: "npm",
        // A flag may take a following `true` or `false`, so no option is known to stand alone.
        value_options: "-C --prefix --registry --userconfig --globalconfig --cache --loglevel -w \
            --workspace --tag --otp --access \
            --scope --script-shell",
        synonyms: "install i add in ins inst insta instal isnt isntall | uninstall un unlink \
            remove rm r | run run-script rum urn \
            | exec x | update up upgrade udpate | ci clean-install ic install-clean | test tst t \
            | view info show v | list \
            ls la ll | link ln | owner author | config c set get",
        ..EMPTY
    },
    ProgramSyntax {
        name: "pnpm",
        value_options: "-C --dir -F --filter --filter-prod --loglevel --reporter --store-dir",
        flags: "-r --recursive -w --workspace-root -s --silent --offline --stream \
            --aggregate-output",
        groups: "run run-script",
        implied: "run run-script",
        explicit: "add approve-builds audit bin cat-file cat-index config create dedupe deploy \
            dlx doctor env exec fetch find-hash \
            help i import info init install install-test la licenses link list ll ln ls outdated \
            pack patch patch-commit \
            patch-remove prune publish rb rebuild remove rm root self-update server setup store \
            un uninstall unlink up update \
            upgrade view why",
        synonyms: "install i | remove rm uninstall un | run run-script | update up upgrade",
        ..EMPTY
    },
    ProgramSyntax {
        name: "yarn",
        aliases: "yarnpkg",
        value_options: "--cwd --registry",
        flags: "-s --silent --verbose --json",
        groups: "run",
        implied: "run",
        explicit: "add audit autoclean bin cache config constraints create dedupe dlx exec \
            explain global help import info init \
            install licenses link list login logout node npm outdated owner pack patch \
            patch-commit plugin policies prune publish \
            rebuild remove search set stage tag team unlink unplug up upgrade upgrade-interactive \
            version versions why workspace \
            workspaces",
        synonyms: "upgrade up",
        ..EMPTY
    },
    ProgramSyntax {
        name: "bun",
        value_options: "--cwd --config",
        flags: "--silent --bun -b",
        groups: "run",
        implied: "run",
        explicit: "a add audit build c create exec help i info init install link list outdated \
            patch patch-commit pm publish r remove \
            repl rm test unlink update upgrade why x",
        synonyms: "add a | install i | remove r rm | create c",
        ..EMPTY
    },
    ProgramSyntax { name: "deno", flags: "-q --quiet", ..EMPTY },
    ProgramSyntax {
        name: "docker",
        value_options: "-c --config --context -H --host -l --log-level --tlscacert --tlscert \
            --tlskey",
        flags: "-D --debug --tls --tlsverify -v --version",
        groups: "container image buildx builder",
        implied: "container image",
        explicit: OTHER_OBJECTS,
        synonyms: "rmi rm remove | ps ls list",
        bounded: "images ps",
        ..EMPTY
    },
    ProgramSyntax {
        name: "podman",
        value_options: "-c --connection --url --identity --root --runroot --storage-driver \
            --storage-opt --log-level --cgroup-manager \
            --conmon --runtime --tmpdir --module",
        flags: "-r --remote --syslog --noout -v --version",
        groups: "container image",
        implied: "container image",
        explicit: OTHER_OBJECTS,
        synonyms: "rmi rm remove | ps ls list",
        bounded: "images ps",
        ..EMPTY
    },
    ProgramSyntax {
        name: "kubectl",
        aliases: "oc k3s-kubectl",
        value_options: "-n --namespace --context --cluster --user --kubeconfig -s --server \
            --token --as --as-group --as-uid \
            --request-timeout --cache-dir --certificate-authority --client-certificate \
            --client-key --tls-server-name \
            --username --password -v --v --vmodule --profile --profile-output",
        flags: "--insecure-skip-tls-verify --match-server-version --warnings-as-errors \
            --disable-compression",
        ..EMPTY
    },
    ProgramSyntax {
        name: "helm",
        value_options: "-n --namespace --kube-context --kubeconfig --kube-apiserver --kube-token \
            --kube-as-user --kube-as-group \
            --kube-ca-file --registry-config --repository-cache --repository-config --burst-limit \
            --qps",
        flags: "--debug",
        synonyms: "uninstall delete del un | list ls",
        ..EMPTY
    },
    ProgramSyntax {
        name: "pip",
        value_options: "--python --log --proxy --retries --timeout --exists-action --trusted-host \
            --cert --client-cert --cache-dir \
            --keyring-provider",
        flags: "--isolated -v -q --verbose --quiet --require-virtualenv --no-input --no-color \
            --no-cache-dir",
        bounded: "check freeze list show",
        // `--log` writes a file; `--python` and `--keyring-provider` run a program. Options can be
        // abbreviated.
        unbounding_prefixes: "--l --p --k",
        ..EMPTY
    },
    ProgramSyntax {
        name: "uv",
        value_options: "--directory --project --config-file --cache-dir --color \
            --allow-insecure-host",
        flags: "-q -v -n --quiet --verbose --no-cache --offline --no-config --no-progress \
            --native-tls",
        ..EMPTY
    },
    ProgramSyntax {
        name: "poetry",
        value_options: "-C --directory -P --project",
        flags: "-n -q -v -vv -vvv --no-interaction --no-plugins --no-cache --ansi --no-ansi",
        ..EMPTY
    },
    ProgramSyntax {
        name: "go",
        value_options: "-C",
        bounded: "build list test vet version",
        // Each of these, also with two hyphens, runs a program, writes a file or replaces the
        // sources.
        unbounding_prefixes: "-exec --exec -toolexec --toolexec -vettool --vettool -overlay \
            --overlay -modfile --modfile -o --o -C --C \
            -ldflags --ldflags -gcflags --gcflags -asmflags --asmflags -gccgoflags --gccgoflags \
            -compiler --compiler -pkgdir --pkgdir \
            -coverprofile --coverprofile -cpuprofile --cpuprofile -memprofile --memprofile \
            -blockprofile --blockprofile \
            -mutexprofile --mutexprofile -trace --trace -outputdir --outputdir -test. --test. \
            -fuzz --fuzz -c --c -gocoverdir --gocoverdir",
        ..EMPTY
    },
    ProgramSyntax { name: "gh", value_options: "-R --repo --hostname", ..EMPTY },
    ProgramSyntax { name: "glab", value_options: "-R --repo", ..EMPTY },
    ProgramSyntax {
        name: "systemctl",
        value_options: "-H --host -M --machine -t --type -p --property -s --signal -n --lines -o \
            --root",
        flags: "--user --system --global --no-pager --no-block --now -q --quiet -f --force \
            --no-ask-password",
        ..EMPTY
    },
    ProgramSyntax {
        name: "apt",
        aliases: "apt-get aptitude",
        value_options: "-o --option -c --config-file -t --target-release",
        flags: "-y --yes --assume-yes -q -qq --quiet -s --dry-run -f -d -m --no-install-recommends",
        synonyms: "upgrade full-upgrade dist-upgrade | remove purge",
        ..EMPTY
    },
    ProgramSyntax {
        name: "dnf",
        aliases: "yum microdnf",
        value_options: "-c --config --installroot --releasever",
        flags: "-y -q",
        ..EMPTY
    },
    ProgramSyntax {
        name: "brew",
        flags: "-v -d -q --verbose --debug --quiet",
        synonyms: "uninstall remove rm | list ls",
        ..EMPTY
    },
    ProgramSyntax { name: "terraform", aliases: "tofu terragrunt", ..EMPTY },
    ProgramSyntax {
        name: "pulumi",
        value_options: "-C --cwd --color -v --verbose",
        flags: "--non-interactive --logtostderr",
        ..EMPTY
    },
    ProgramSyntax {
        name: "aws",
        value_options: "--profile --region --endpoint-url --output --query --color --ca-bundle \
            --cli-read-timeout \
            --cli-connect-timeout --cli-binary-format",
        flags: "--debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager \
            --no-cli-auto-prompt",
        ..EMPTY
    },
    ProgramSyntax {
        name: "gcloud",
        value_options: "--project --account --configuration --billing-project \
            --impersonate-service-account --access-token-file \
            --format --verbosity --flags-file --trace-token",
        flags: "-q --quiet --log-http --no-log-http --user-output-enabled --no-user-output-enabled",
        groups: "alpha beta preview",
        ..EMPTY
    },
    ProgramSyntax {
        name: "az",
        value_options: "--subscription -o --output --query",
        flags: "--debug --verbose --only-show-errors",
        ..EMPTY
    },
    ProgramSyntax {
        name: "hg",
        value_options: "-R --repository --cwd --config --color --encoding --pager",
        flags: "-y --noninteractive -q --quiet -v --verbose --traceback --debug --profile --hidden",
        synonyms: "commit ci | update up checkout co | remove rm | rename move mv | copy cp | log \
            history | status st | summary sum \
            | annotate blame | identify id | forget drop",
        settings: "--config",
        ..EMPTY
    },
    ProgramSyntax {
        name: "jj",
        value_options: "-R --repository --at-operation --at-op --color --config --config-file",
        flags: "--ignore-working-copy --ignore-immutable --debug --quiet --no-pager",
        settings: "--config --config-file --config-toml",
        ..EMPTY
    },
    ProgramSyntax {
        name: "svn",
        value_options: "--username --password --config-dir --config-option",
        flags: "--non-interactive --no-auth-cache --trust-server-cert",
        synonyms: "commit ci | delete del remove rm | checkout co | update up | switch sw",
        ..EMPTY
    },
    ProgramSyntax {
        name: "bundle",
        aliases: "bundler",
        flags: "--no-color -V --verbose -r",
        ..EMPTY
    },
    ProgramSyntax {
        name: "gem",
        value_options: "--config-file",
        flags: "--no-verbose --norc",
        ..EMPTY
    },
    ProgramSyntax {
        name: "composer",
        value_options: "-d --working-dir",
        flags: "-q -v -vv -vvv -n --no-interaction",
        synonyms: "run-script run | install i | update u upgrade | require r | remove rm uninstall",
        ..EMPTY
    },
    ProgramSyntax {
        name: "ip",
        value_options: "-n -ne -netns -f -family -b -batch -l -loops -rc -rcvbuf",
        flags: "-s -stats -statistics -d -details -r -resolve -4 -6 -B -0 -M -o -oneline -t \
            -timestamp -ts -N -a -all -c -color -br \
            -brief -j -json -p -pretty -h -human -V -Version",
        synonyms: "address addr | neighbor neighbour | show list lst",
        quirk: ProgramQuirk::Abbreviated,
        ..EMPTY
    },
    ProgramSyntax {
        name: "tc",
        value_options: "-n -netns -b -batch -cf -conf",
        quirk: ProgramQuirk::Abbreviated,
        ..EMPTY
    },
    ProgramSyntax {
        name: "bridge",
        value_options: "-n -netns -b -batch",
        quirk: ProgramQuirk::Abbreviated,
        ..EMPTY
    },
    ProgramSyntax { name: "devlink", quirk: ProgramQuirk::Abbreviated, ..EMPTY },
    ProgramSyntax {
        name: "nmcli",
        value_options: "-f --fields -g --get-values -w --wait -e --escape -c --colors -m --mode",
        flags: "-t --terse -p --pretty -a --ask -s --show-secrets -o --overview",
        quirk: ProgramQuirk::Abbreviated,
        ..EMPTY
    },
    ProgramSyntax { name: "dotnet", flags: "-d --diagnostics", ..EMPTY },
    ProgramSyntax { name: "swift", ..EMPTY },
    ProgramSyntax { name: "zig", ..EMPTY },
    ProgramSyntax {
        name: "nix",
        value_options: "--extra-experimental-features --store",
        flags: "-v -L --offline --impure",
        ..EMPTY
    },
    ProgramSyntax {
        name: "make",
        aliases: "gmake bmake",
        value_options: "-C --directory -f --file --makefile -I --include-dir -o --old-file -W \
            --what-if",
        flags: "-B -k -n -s -i -e -r -R -w -q -t --silent --always-make --keep-going --dry-run",
        quirk: ProgramQuirk::MultipleSubcommands,
        ..EMPTY
    },
    ProgramSyntax {
        name: "just",
        value_options: "-f --justfile -d --working-directory --shell",
        quirk: ProgramQuirk::MultipleSubcommands,
        ..EMPTY
    },
    ProgramSyntax {
        name: "ninja",
        value_options: "-C -f -j -k -l -d -t -w",
        quirk: ProgramQuirk::MultipleSubcommands,
        ..EMPTY
    },
    ProgramSyntax {
        name: "task",
        aliases: "go-task",
        value_options: "-d --dir -t --taskfile",
        quirk: ProgramQuirk::MultipleSubcommands,
        ..EMPTY
    },
    ProgramSyntax { name: "rake", quirk: ProgramQuirk::MultipleSubcommands, ..EMPTY },
    ProgramSyntax { name: "mix", ..EMPTY },
    ProgramSyntax {
        name: "gradle",
        aliases: "gradlew",
        value_options: "-p --project-dir -b -c -g -I -x",
        quirk: ProgramQuirk::SeveralOfProjects,
        ..EMPTY
    },
    ProgramSyntax {
        name: "mvn",
        aliases: "mvnw",
        value_options: "-f --file -s --settings -pl -P -rf",
        quirk: ProgramQuirk::SeveralOfProjects,
        ..EMPTY
    },
];

/// Subcommands of docker and podman that are not about containers and images.
const OTHER_OBJECTS: &str = "builder buildx checkpoint compose config context generate \
    healthcheck info kube login logout machine \
    manifest network node plugin pod scout search secret service stack swarm system trust version \
    volume";

/// The built-in commands of git. No alias can replace them.
const GIT_SUBCOMMANDS: &str = "add am annotate apply archive bisect blame branch bugreport bundle \
    cat-file check-attr check-ignore \
    check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column \
    commit \
    commit-graph commit-tree config count-objects credential describe diagnose diff diff-files \
    diff-index \
    diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg \
    for-each-ref \
    for-each-repo format-patch fsck gc get-tar-commit-id grep hash-object help hook http-push \
    index-pack init \
    init-db interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance \
    merge merge-base \
    merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes \
    pack-objects \
    pack-redundant pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase \
    receive-pack reflog \
    refs remote repack replace replay request-pull rerere reset restore rev-list rev-parse revert \
    rm send-email \
    send-pack shortlog show show-branch show-index show-ref sparse-checkout stage stash status \
    stripspace \
    submodule subtree switch symbolic-ref tag unpack-file unpack-objects update-index update-ref \
    update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag \
    version whatchanged \
    worktree write-tree";
