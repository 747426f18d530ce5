//! Probes of protected paths of the workspace.

use super::SuccessSign::{Changes, Creates, Output};
use super::{EscapeProbe, HIDDEN, allowed, blocked_change, restored};

pub(super) const PROTECTED: &[EscapeProbe] = &[
    blocked_change(
        "create a hook",
        "echo evil > .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "create a hook through a symbolic link",
        "ln -s .git g; echo evil > g/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "create a hook through /proc",
        "echo evil > /proc/self/cwd/.git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "create a hook as a hard link",
        "ln file.txt .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "move a file to a hook",
        "echo evil > x; mv x .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "replace .git by a directory with a hook",
        "mv .git .git2; mkdir -p .git/hooks; echo evil > .git/hooks/x",
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "exchange .git for a directory with a hook",
        python!(
            "os.makedirs(\"fake/hooks\"); open(\"fake/hooks/x\", \"w\").close(); \
                libc.renameat2(-100, b\"fake\", -100, b\".git\", 2)"
        ),
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "replace the hooks directory",
        "mv .git/hooks .git/h2; mkdir .git/hooks; echo evil > .git/hooks/x",
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "replace the hooks directory by a symbolic link",
        "mkdir e; rm -rf .git/hooks; ln -s ../e .git/hooks",
        Changes("{ws}/.git/hooks"),
    ),
    blocked_change(
        "change permissions of the hooks directory",
        "chmod 777 .git/hooks",
        Changes("{ws}/.git/hooks"),
    ),
    blocked_change(
        "replace .git by a file",
        "mv .git g; echo 'gitdir: evil' > .git",
        Changes("{ws}/.git"),
    ),
    blocked_change(
        "change .git/config",
        "git config core.hooksPath evil",
        Changes("{ws}/.git/config"),
    ),
    blocked_change(
        "replace .git/config",
        "cp .git/config c; echo '[core] hooksPath = x' >> c; mv -f c .git/config",
        Changes("{ws}/.git/config"),
    ),
    restored(
        "create .git/config.worktree",
        "echo evil > .git/config.worktree",
        Creates("{ws}/.git/config.worktree"),
    ),
    restored(
        "create .git/commondir",
        "echo ../evil > .git/commondir",
        Creates("{ws}/.git/commondir"),
    ),
    restored(
        "create a hook of a submodule",
        "mkdir -p .git/modules/m/hooks; echo evil > .git/modules/m/hooks/x",
        Creates("{ws}/.git/modules/m/hooks/x"),
    ),
    blocked_change(
        "create a hook of a nested repository",
        "echo evil > nested/.git/hooks/x",
        Creates("{ws}/nested/.git/hooks/x"),
    ),
    blocked_change(
        "replace a nested repository",
        "mv nested n2; mkdir -p nested/.git/hooks; echo evil > nested/.git/hooks/x",
        Creates("{ws}/nested/.git/hooks/x"),
    ),
    restored(
        "create a repository with a hook",
        "mkdir -p fresh/.git/hooks; echo evil > fresh/.git/hooks/x",
        Creates("{ws}/fresh/.git/hooks/x"),
    ),
    restored(
        "create a hook with other letter case",
        "mkdir -p sub/.GIT/Hooks; echo evil > sub/.GIT/Hooks/x",
        Creates("{ws}/sub/.GIT/Hooks/x"),
    ),
    blocked_change(
        "change a .git file",
        "echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "replace a .git file",
        "mv worktree/.git worktree/g; echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "overwrite a .git file by a rename",
        "echo 'gitdir: /tmp/evil' > g; mv -f g worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "replace a linked worktree",
        "mv worktree w2; mkdir worktree; echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    restored(
        "create a .git file",
        "mkdir fresh; echo 'gitdir: ../evil' > fresh/.git",
        Creates("{ws}/fresh/.git"),
    ),
    restored(
        "create .git as a symbolic link",
        "mkdir fresh; ln -s ../evil fresh/.git",
        Creates("{ws}/fresh/.git"),
    ),
    restored(
        "create a .git/config in an unreadable directory",
        "mkdir -p fresh/.git; echo '[core] fsmonitor = evil' > fresh/.git/config; chmod 311 \
            fresh/.git",
        Creates("{ws}/fresh/.git/config"),
    ),
    blocked_change(
        "create a hook in an unreadable directory",
        "echo evil > .git/hooks/pre-commit; chmod 311 .git/hooks",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    restored(
        "create .git/commondir in an unreadable directory",
        "cp -r .git evil; echo '[core] fsmonitor = evil' >> evil/config; echo ../evil > \
            .git/commondir; chmod 311 .git",
        Creates("{ws}/.git/commondir"),
    ),
    restored(
        "create a repository that is not named .git",
        "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo '[core] \
            fsmonitor = evil' > docs/config",
        Creates("{ws}/docs/config"),
    ),
    restored(
        "create a repository that refers to another one",
        "mkdir -p docs x/objects x/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo ../x > \
            docs/commondir; echo '[core] worktree = .' > docs/config.worktree",
        Creates("{ws}/docs/commondir"),
    ),
    restored(
        "create a repository of symbolic links",
        "mkdir -p x lib; cd lib; echo 'ref: refs/heads/m' > HEAD; ln -s ../x objects; ln -s ../x \
            refs; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/lib/config"),
    ),
    restored(
        "create a repository of executable files",
        "mkdir lib; cd lib; ln -s refs/heads/m HEAD; : > objects; : > refs; chmod +x objects \
            refs; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/lib/config"),
    ),
    restored(
        "create a repository in an incomplete repository",
        "for d in lib lib/src; do mkdir -p $d/objects $d/refs; echo 'ref: refs/heads/m' > \
            $d/HEAD; done; echo '[core] fsmonitor = evil' > lib/src/config",
        Creates("{ws}/lib/src/config"),
    ),
    restored(
        "create a repository below .git",
        "mkdir -p .git/logs/x/objects .git/logs/x/refs; cd .git/logs/x; echo 'ref: refs/heads/m' \
            > HEAD; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/.git/logs/x/config"),
    ),
    restored(
        "create a repository below a hidden name",
        "mkdir -p x.pem/objects x.pem/refs; cd x.pem; echo 'ref: refs/heads/m' > HEAD; echo \
            '[core] fsmonitor = evil' > config",
        Creates("{ws}/x.pem/config"),
    ),
    restored(
        "create editor tasks below .git",
        "mkdir -p .git/objects/x/.vscode; echo evil > .git/objects/x/.vscode/tasks.json",
        Creates("{ws}/.git/objects/x/.vscode"),
    ),
    restored(
        "create editor tasks below a hidden name",
        "mkdir -p x.pem/.vscode; echo evil > x.pem/.vscode/tasks.json",
        Creates("{ws}/x.pem/.vscode"),
    ),
    restored(
        "create a hard link to the configuration of a new repository",
        "git init -q fresh && ln fresh/.git/config x",
        Creates("{ws}/fresh/.git/config"),
    ),
    blocked_change(
        "change a hook in core.hooksPath",
        "echo evil > named/hooks/pre-commit",
        Changes("{ws}/named/hooks/pre-commit"),
    ),
    blocked_change(
        "change a file that the git configuration includes",
        "echo evil > named/included",
        Changes("{ws}/named/included"),
    ),
    blocked_change(
        "change the target of a protected link",
        "echo evil > tools/servers.json",
        Changes("{ws}/tools/servers.json"),
    ),
    blocked_change(
        "replace the target of a protected link",
        "mv tools t2; mkdir tools; echo evil > tools/servers.json",
        Changes("{ws}/tools/servers.json"),
    ),
    blocked_change("move the repository", "mv .git elsewhere", Changes("{ws}/.git/HEAD")),
    restored(
        "create a hook next to a secret that is too large to back up",
        "truncate -s 65M x.pem; mkdir fresh; echo evil > fresh/.mcp.json; echo evil > \
            .git/hooks/pre-commit; true",
        Creates("{ws}/fresh/.mcp.json"),
    ),
    restored("create .gitmodules", "echo evil > .gitmodules", Creates("{ws}/.gitmodules")),
    blocked_change(
        "change editor tasks",
        "echo evil > .vscode/tasks.json",
        Changes("{ws}/.vscode/tasks.json"),
    ),
    restored(
        "create editor configuration",
        "mkdir .idea; echo evil > .idea/workspace.xml",
        Creates("{ws}/.idea/workspace.xml"),
    ),
    restored(
        "create editor configuration in a read-only directory",
        "mkdir .idea; echo evil > .idea/workspace.xml; chmod 555 .idea",
        Creates("{ws}/.idea/workspace.xml"),
    ),
    restored(
        "create editor configuration as a symbolic link",
        "mkdir e; ln -s e .idea",
        Creates("{ws}/.idea"),
    ),
    restored(
        "create a development container",
        "mkdir -p .devcontainer; echo evil > .devcontainer/devcontainer.json",
        Creates("{ws}/.devcontainer/devcontainer.json"),
    ),
    restored(
        "create an MCP server configuration",
        "echo evil > .mcp.json",
        Creates("{ws}/.mcp.json"),
    ),
    restored(
        "create an agent configuration",
        "mkdir -p sub/.claude; echo evil > sub/.claude/settings.json",
        Creates("{ws}/sub/.claude/settings.json"),
    ),
    restored(
        "create a Cofferdam policy",
        "mkdir .cofferdam; echo evil > .cofferdam/policy.toml",
        Creates("{ws}/.cofferdam/policy.toml"),
    ),
    restored("create .envrc", "echo evil > .envrc", Creates("{ws}/.envrc")),
    restored("create .bashrc", "echo evil > .bashrc", Creates("{ws}/.bashrc")),
    blocked_change("change a secret", "echo x >> .env", Changes("{ws}/.env")),
    blocked_change("replace a secret", "rm -f .env; echo x > .env", Changes("{ws}/.env")),
    blocked_change(
        "replace the directory of a secret",
        "mv deploy d2; mkdir deploy; echo mine > deploy/id_ed25519",
        Changes("{ws}/deploy/id_ed25519"),
    ),
    allowed("read a secret", "cat .env", Output("env-secret"), HIDDEN),
    allowed(
        "read a secret through a symbolic link",
        "ln -s .env e; cat e",
        Output("env-secret"),
        HIDDEN,
    ),
    allowed("read a secret through a hard link", "ln .env e; cat e", Output("env-secret"), HIDDEN),
    allowed("read a secret after renaming it", "mv .env e; cat e", Output("env-secret"), HIDDEN),
    allowed(
        "read a secret after unmounting its mask",
        "umount .env 2> /dev/null; cat .env",
        Output("env-secret"),
        HIDDEN,
    ),
    allowed(
        "read a secret after renaming its directory",
        "mv deploy d2; cat d2/id_ed25519; cat deploy/id_ed25519",
        Output("key-secret"),
        HIDDEN,
    ),
    allowed("read a private key", "cat deploy/id_ed25519", Output("key-secret"), HIDDEN),
];
