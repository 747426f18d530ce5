//! Tokens in the settings of tools do not reach commands, and the tools work all the same.

use std::path::PathBuf;

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::program::{ProgramOutput, TestHome};

use super::CONFINING_LEVELS;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// Files of the home, each with a secret.
const HOME_SECRETS: &[(&str, &str)] = &[
    (
        ".gitconfig",
        "# SECRET\n[user]\n\tname = Ada\n\temail = ada@example.org\n[http]\n\textraheader = \
            AUTHORIZATION: basic SECRET\n\
         [http \"https://host/\"]\n\textraHeader = \"X: SECRET\"\n[url \
         \"https://u:SECRET@host/\"]\n\tinsteadOf = https://host/\n\
         [credential]\n\thelper = \"!echo password=SECRET\"\n[alias]\n\tst = status \
         --short\n[core]\n\tsshCommand = sshpass -p SECRET ssh\n[include]\n\tpath = \
         ~/.gitconfig-work\n",
    ),
    (".gitconfig-work", "[github]\n\ttoken = SECRET\n"),
    (
        ".config/git/config",
        "[init]\n\tdefaultBranch = trunk\n[url \"https://SECRET@host/\"]\n\tpushInsteadOf = \
            git@host:\n",
    ),
    (
        ".cargo/config.toml",
        "[registries.mine]\nindex = \"sparse+https://u:SECRET@host/\"\ntoken = \
            \"SECRET\"\n[env]\nAPI_TOKEN = \"SECRET\"\nPLAIN = \"kept\"\n\
         [http]\nproxy = \"http://u:SECRET@host\"\n",
    ),
    (
        ".cargo/env",
        "export CARGO_REGISTRY_TOKEN=\"SECRET\"\nexport PATH=\"$HOME/.cargo/bin:$PATH\"\n",
    ),
    (".config/git/credentials", "https://u:SECRET@host\n"),
    (".cargo/credentials.toml", "[registry]\ntoken = \"SECRET\"\n"),
    (".git-credentials", "https://u:SECRET@host"),
    (".config/gh/hosts.yml", "oauth_token: SECRET"),
    (".netrc", "machine host login u password SECRET"),
    (".npmrc", "//registry.example/:_authToken=SECRET"),
    (".yarnrc.yml", "npmAuthToken: SECRET"),
    (".config/pnpm/rc", "//registry.example/:_authToken=SECRET"),
    (".config/pip/pip.conf", "[global]\nindex-url = https://u:SECRET@host/simple"),
    (".pip/pip.conf", "[global]\nindex-url = https://u:SECRET@host/simple"),
    (".pypirc", "password = SECRET"),
    (".config/uv/uv.toml", "index-url = \"https://u:SECRET@host\""),
    (".config/go/env", "GOPROXY=https://u:SECRET@host"),
    (".m2/settings.xml", "<password>SECRET</password>"),
    (".gradle/gradle.properties", "token=SECRET"),
    (".docker/config.json", "{\"auths\": \"SECRET\"}"),
    (".nuget/NuGet/NuGet.Config", "SECRET"),
    (".bundle/config", "BUNDLE_HOST: u:SECRET"),
    (".gem/credentials", ":rubygems_api_key: SECRET"),
    (".composer/auth.json", "SECRET"),
    (".condarc", "channels:\n  - https://host/t/SECRET/main"),
    (".bunfig.toml", "token = \"SECRET\""),
    (".aws/credentials", "aws_secret_access_key = SECRET"),
    (".config/hub", "oauth_token: SECRET"),
    (".terraformrc", "token = \"SECRET\""),
];

/// What lies in folders that commands see as a whole, of the home and of the workspace.
const DIRECTORY_SECRETS: &[(&str, &str)] = &[
    (
        ".local/share/fnm/node-versions/v20/installation/etc/npmrc",
        "//registry.example/:_authToken=SECRET\n",
    ),
    (".local/share/mise/installs/node/20/etc/npmrc", "//registry.example/:_authToken=SECRET\n"),
    (
        ".local/share/uv/python/cpython/pip.conf",
        "[global]\nindex-url = https://u:SECRET@host/simple\n",
    ),
    (
        ".local/share/pipx/venvs/tool/pip.conf",
        "[global]\nindex-url = https://u:SECRET@host/simple\n",
    ),
    (
        ".sdkman/candidates/maven/3/conf/settings.xml",
        "<settings><servers><server><password>SECRET</password></server></servers></settings>\n",
    ),
    (".pyenv/.git/config", "[remote \"origin\"]\n\turl = https://u:SECRET@host/a.git\n"),
    ("workspace/.yarnrc.yml", "npmAuthToken: SECRET\n"),
    ("workspace/app/.yarnrc", "\"//host/:_authToken\" \"SECRET\"\n"),
    (
        "workspace/bunfig.toml",
        "[install.scopes]\n\"@a\" = { token = \"SECRET\", url = \"https://host/\" }\n",
    ),
    ("workspace/.bunfig.toml", "[install]\ntoken = \"SECRET\"\n"),
    ("workspace/.gemrc", ":rubygems_api_key: SECRET\n:sources:\n- https://u:SECRET@h/\n"),
    ("workspace/pdm.toml", "[pypi]\npassword = \"SECRET\"\n"),
    ("workspace/.pdm.toml", "[pypi]\npassword = \"SECRET\"\n"),
    ("workspace/.config/pnpm/rc", "//host/:_authToken=SECRET\n_password=SECRET\n"),
    ("workspace/.bazelrc", "build --remote_header=x-api-key=SECRET\n"),
    ("workspace/.jvmopts", "-Dhttp.proxyPassword=SECRET\n"),
    ("workspace/.sbtopts", "-Dhttp.proxyPassword=SECRET\n"),
    ("workspace/.mavenrc", "MAVEN_OPTS=\"-Dhttp.proxyPassword=SECRET -Xmx1g\"\n"),
    ("workspace/.gradle/init.gradle", "credentials { password \"SECRET\" }\n"),
    ("workspace/app/.npmrc", "#//host/:_authToken=SECRET\n"),
    ("workspace/.hgrc", "[auth]\nx.password = SECRET\n"),
    ("workspace/terraform.rc", "credentials \"host\" {\n  token = \"SECRET\"\n}\n"),
    ("workspace/.cabal/config", "repository x\n  password: SECRET\n"),
    ("workspace/.config/go/env", "GOPROXY=https://u:SECRET@host\n"),
    ("workspace/mise.toml", "[env]\nAPI_TOKEN = \"SECRET\"\n"),
    ("workspace/poetry.toml", "[pypi-token]\npypi = \"SECRET\"\n"),
    (
        "workspace/app/nuget.config",
        "<apikeys><add key=\"https://host/\" value=\"SECRET\"/></apikeys>\n",
    ),
    ("workspace/pip.conf", "[global]\nindex-url = https://u:SECRET@host/simple\n"),
    ("workspace/uv.toml", "index-url = \"https://u:SECRET@host/simple\"\n"),
    ("workspace/auth.json", "{\"github-oauth\": {\"github.com\": \"SECRET\"}}\n"),
    ("workspace/.bundle/config", "---\nBUNDLE_GEMS__EXAMPLE__ORG: \"u:SECRET\"\n"),
    ("workspace/gradle.properties", "signing.password=SECRET\n"),
    (
        "workspace/.hg/hgrc",
        "[auth]\nx.password = SECRET\n[paths]\ndefault = https://u:SECRET@host/r\n",
    ),
    ("workspace/.terraformrc", "credentials \"host\" {\n  token = \"SECRET\"\n}\n"),
    (
        "workspace/.mvn/settings.xml",
        "<settings><servers><server><password>SECRET</password></server></servers></settings>\n",
    ),
    (
        "workspace/NuGet.Config",
        "<configuration><add key=\"ClearTextPassword\" value=\"SECRET\" /></configuration>\n",
    ),
    ("workspace/pnpm-workspace.yaml", "httpProxy: http://u:SECRET@host\n"),
    ("miniconda3/.condarc", "channels:\n  - https://host/t/SECRET/main\n"),
    ("miniconda3/envs/e/pip.conf", "[global]\nindex-url = https://u:SECRET@host/simple\n"),
    (".nvm/versions/node/v24/etc/npmrc", "//registry.example/:_authToken=SECRET\n"),
    (
        ".pyenv/versions/3.14/pip.conf",
        "[global]\nextra-index-url =\n  https://u:SECRET@host/simple\n",
    ),
    (
        ".local/pipx/venvs/tool/pipx_metadata.json",
        "{\"pip_args\": [\"--index-url\", \"https://u:SECRET@host\"]}\n",
    ),
    ("workspace/.npmrc", "//registry.example/:_authToken=SECRET\n"),
    (
        "workspace/.git/config",
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = \
            https://u:SECRET@host/a.git\n",
    ),
    (
        "workspace/.git/modules/m/config",
        "[remote \"origin\"]\n\turl = https://u:SECRET@host/m.git\n",
    ),
    (
        "workspace/nested/.git/config",
        "[http]\n\textraheader = SECRET\n[include]\n\tpath = ../more\n",
    ),
    (
        "workspace/nested/more",
        "[http]\n\tproxy = http://u:SECRET@host\n[include]\n\tpath = even-more\n",
    ),
    ("workspace/nested/even-more", "[core]\n\tsshCommand = sshpass -p SECRET ssh\n"),
    ("workspace/.git/credentials", "https://u:SECRET@host\n"),
    (
        "workspace/.cargo/config.toml",
        "include = [\"more.toml\"]\n[registries.mine]\nindex = \
            \"sparse+https://u:SECRET@host/\"\ntoken = \"SECRET\"\n[env]\nPLAIN = \"kept\"\n\
         [alias]\np = \"publish --token SECRET\"\n[target.wasm32-wasip1]\nrunner = [\"run\", \
         \"--token=SECRET\"]\n",
    ),
    ("workspace/.cargo/more.toml", "[http]\nproxy = \"u:SECRET@host\"\n"),
    ("workspace/nested/.cargo/config", "[registry]\ntoken = \"SECRET\"\n"),
];

fn new_home(level: SandboxLevel) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write_file(
        "config/cofferdam/config.toml",
        format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\n"),
    );
    for (path, text) in HOME_SECRETS.iter().chain(DIRECTORY_SECRETS) {
        home.write_file(path, text);
    }
    for folder in ["objects", "refs"] {
        std::fs::create_dir_all(home.workspace().join(".git").join(folder)).expect("it is made");
    }
    home.write_file("workspace/.git/HEAD", "ref: refs/heads/main\n");
    home
}

fn run_bash(home: &TestHome, line: &str) -> ProgramOutput {
    let input = serde_json::json!({"command": line}).to_string();
    let mut command = home.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
    if let Some(rustup) = std::env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".rustup")))
    {
        command.env("RUSTUP_HOME", rustup);
    }
    home.start(command).wait_for_exit()
}

#[test]
fn no_command_reads_a_token_from_settings() {
    for level in CONFINING_LEVELS {
        let home = new_home(level);
        for (path, _) in HOME_SECRETS {
            let ran = run_bash(
                &home,
                &format!(
                    "cat {0}/{path}; cat ~/{path}; cat /proc/self/root{0}/{path}; env",
                    home.path().display()
                ),
            );
            assert!(
                !ran.stdout.contains("SECRET") && !ran.stderr.contains("SECRET"),
                "{level}: {path}: {ran:?}"
            );
        }
        for (path, _) in DIRECTORY_SECRETS {
            let ran = run_bash(&home, &format!("cat {}/{path}", home.path().display()));
            // Landlock cannot except a file from a folder that is written to.
            let is_open = level == SandboxLevel::Kernel && path.starts_with("workspace/");
            assert_eq!(ran.stdout.contains("SECRET"), is_open, "{level}: {path}: {ran:?}");
        }
        let ran = run_bash(
            &home,
            "cp -r .git/config copy; git remote -v; git config --list --show-origin; git -C \
                nested config --list; cat copy",
        );
        assert_eq!(
            ran.stdout.contains("SECRET"),
            level == SandboxLevel::Kernel,
            "{level}: {ran:?}"
        );
        assert!(
            ran.stdout.contains("https://host/a.git") || level == SandboxLevel::Kernel,
            "{level}: {ran:?}"
        );
        for (path, text) in HOME_SECRETS.iter().chain(DIRECTORY_SECRETS) {
            let now = std::fs::read_to_string(home.path().join(path)).expect("it is there");
            assert_eq!(&now, text, "{level}: {path}");
        }
    }
}

#[test]
fn git_has_its_settings_without_the_secrets() {
    for level in CONFINING_LEVELS {
        let home = new_home(level);
        let line = "git config user.name && git config init.defaultBranch && git config \
            --get-regexp '^(url|http|credential|github)'; \
            git st && git commit -q --allow-empty -m first && git log --format=%an && git init -q \
            fresh && cat fresh/.git/HEAD";
        let ran = run_bash(&home, line);
        for word in
            ["Ada\n", "trunk\n", "url.https://host/.insteadof https://host/", "refs/heads/trunk"]
        {
            assert!(ran.stdout.contains(word), "{level}: {word}: {ran:?}");
        }
        assert!(
            ran.stdout.matches("Ada").count() == 2 && !ran.stdout.contains("SECRET"),
            "{level}: {ran:?}"
        );
    }
}

#[test]
fn cargo_has_its_settings_without_the_secrets() {
    // Without `--vcs none` cargo reads git's settings by itself, which are closed at `kernel` where
    // they hold secrets.
    let line = "cargo init --quiet --offline --vcs none --name hello hello && cd hello && \
        echo 'fn main() { println!(\"{:?} {:?}\", option_env!(\"PLAIN\"), \
        option_env!(\"API_TOKEN\")) }' > src/main.rs && cargo run --quiet --offline";
    let full = new_home(SandboxLevel::Full);
    let ran = run_bash(&full, line);
    assert!(ran.stdout.contains("Some(\"kept\") None"), "{ran:?}");
    // There the file is closed, and cargo does not go on without it.
    let kernel = new_home(SandboxLevel::Kernel);
    let ran = run_bash(&kernel, line);
    assert!(!ran.stdout.contains("Some(") && ran.stdout.contains(".cargo/config.toml"), "{ran:?}");
    kernel.write_file(".cargo/config.toml", "[env]\nPLAIN = \"kept\"\n");
    let ran = run_bash(&kernel, &format!("rm -rf hello; {line}"));
    assert!(ran.stdout.contains("Some(\"kept\") None"), "{ran:?}");
}

#[test]
fn the_settings_of_a_repository_outside_hold_no_secrets_for_commands() {
    const SETTINGS: &[(&str, &str)] = &[
        (
            "main/.git/config",
            "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = \
                https://u:SECRET@host/a.git\n[include]\n\tpath = more\n",
        ),
        ("main/.git/more", "[http]\n\textraheader = SECRET\n"),
        ("main/.git/credentials", "https://u:SECRET@host\n"),
    ];
    for level in CONFINING_LEVELS {
        let home = new_home(level);
        std::fs::remove_dir_all(home.workspace().join(".git")).expect("it goes");
        for folder in ["objects", "refs/heads", "worktrees/w"] {
            std::fs::create_dir_all(home.path().join("main/.git").join(folder))
                .expect("it is made");
        }
        home.write_file("main/.git/HEAD", "ref: refs/heads/main\n");
        home.write_file("main/.git/description", "a description\n");
        home.write_file("main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n");
        home.write_file("main/.git/worktrees/w/commondir", "../..\n");
        let workspace = home.workspace().canonicalize().expect("it is there");
        home.write_file("main/.git/worktrees/w/gitdir", format!("{}/.git\n", workspace.display()));
        let main = home.path().canonicalize().expect("it is there").join("main/.git");
        home.write_file("workspace/.git", format!("gitdir: {}/worktrees/w\n", main.display()));
        SETTINGS.iter().for_each(|(path, text)| home.write_file(path, text));
        let ran = run_bash(
            &home,
            &format!(
                "cat {0}/config {0}/more {0}/credentials; cat {0}/description; ls {0}",
                main.display()
            ),
        );
        assert!(!ran.stdout.contains("SECRET"), "{level}: {ran:?}");
        assert!(
            ran.stdout.contains("a description") && ran.stdout.contains("worktrees"),
            "{level}: {ran:?}"
        );
        let ran = run_bash(&home, "git config --list; git remote -v; git symbolic-ref HEAD");
        assert!(!ran.stdout.contains("SECRET"), "{level}: {ran:?}");
        match level {
            SandboxLevel::Full => assert!(
                ran.stdout.contains("https://host/a.git") && ran.stdout.contains("refs/heads/w"),
                "{ran:?}"
            ),
            _ => assert!(
                ran.stdout.contains("main/.git/config contains a secret, so commands"),
                "{ran:?}"
            ),
        }
        // Without a secret everything is there.
        std::fs::remove_file(home.path().join("main/.git/credentials")).expect("it goes");
        home.write_file("main/.git/more", "");
        home.write_file(
            "main/.git/config",
            "[core]\n\trepositoryformatversion = 0\n[remote \
            \"origin\"]\n\turl = https://host/a.git\n",
        );
        let ran = run_bash(&home, "git remote -v; git symbolic-ref HEAD");
        assert!(
            ran.stdout.contains("https://host/a.git") && !ran.stdout.contains("holds a secret"),
            "{level}: {ran:?}"
        );
    }
}

#[test]
fn permissions_of_this_programs_files_are_put_back() {
    let home = new_home(SandboxLevel::Kernel);
    let folder = home.path().join("config/cofferdam");
    let ran = run_bash(
        &home,
        &format!(
            "chmod 777 {0} {0}/config.toml; chmod 0 {1}/state/cofferdam",
            folder.display(),
            home.path().display()
        ),
    );
    assert!(
        ran.stdout.contains("the command changed the permissions of")
            && ran.stdout.contains("; they were restored"),
        "{ran:?}"
    );
    let ran = run_bash(&home, "echo still here");
    assert!(ran.exit_code == 0 && ran.stdout.contains("still here"), "{ran:?}");
}

#[test]
fn what_the_user_opens_by_name_is_read_as_it_is() {
    for level in CONFINING_LEVELS {
        let home = new_home(level);
        let npmrc = home.path().join(".npmrc");
        home.write_file(
            "config/cofferdam/config.toml",
            format!(
                "[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\nread = [{npmrc:?}]\n"
            ),
        );
        let ran = run_bash(&home, &format!("cat {}", npmrc.display()));
        assert!(ran.stdout.contains("_authToken=SECRET"), "{level}: {ran:?}");
    }
}

#[test]
fn no_spelling_of_a_variable_opens_the_home() {
    for level in CONFINING_LEVELS {
        let home = new_home(level)
            .with_file(".ssh/id_rsa", "SECRET")
            .with_file("tools/bin/x", "")
            .with_file("cargo2/config.toml", "[registry]\ntoken = \"SECRET\"\n");
        let base = home.path().display().to_string();
        let path = std::env::var("PATH").expect("there is one");
        for (name, value) in [
            ("PATH", format!("{base}/tools/..:{path}")),
            ("PATH", format!("{base}/tools/bin/../..:{path}")),
            (
                "PATH",
                format!("{base}/../{}:{path}", home.path().file_name().expect("a name").display()),
            ),
            ("JAVA_HOME", format!("{base}/tools/..")),
            ("VIRTUAL_ENV", format!("{base}/tools/..")),
            ("NVM_DIR", format!("{base}/.ssh")),
            ("CARGO_HOME", format!("{base}/cargo2")),
        ] {
            let line = format!(
                "cat {base}/.ssh/id_rsa {base}/cargo2/config.toml; ls {base}/state/cofferdam"
            );
            let mut command = home.command(&[
                "tools",
                "call",
                "bash",
                &serde_json::json!({"command": line}).to_string(),
                "--mode",
                "auto",
            ]);
            command.env(name, &value);
            let ran = home.start(command).wait_for_exit();
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(
                !said.contains("SECRET") && !said.contains("keys"),
                "{level}: {name}={value}: {said}"
            );
        }
    }
}

#[test]
fn settings_that_are_links_into_the_workspace_hold_no_secrets_there() {
    let home = new_home(SandboxLevel::Full);
    home.write_file(
        "workspace/dotfiles/gitconfig",
        "[user]\n\tname = Ada\n[github]\n\ttoken = SECRET\n",
    );
    std::fs::remove_file(home.path().join(".gitconfig")).expect("it is removed");
    std::os::unix::fs::symlink(
        home.path().join("workspace/dotfiles/gitconfig"),
        home.path().join(".gitconfig"),
    )
    .expect("a link");
    let ran = run_bash(&home, "cat dotfiles/gitconfig ~/.gitconfig");
    assert!(ran.stdout.matches("Ada").count() == 2 && !ran.stdout.contains("SECRET"), "{ran:?}");
}
