//! Probes of protected paths of the workspace.

use super::SuccessSign::{Changes, Creates, Output};
use super::{EscapeProbe, HIDDEN, allowed, blocked_change, restored};

pub(super) const PROTECTED: &[EscapeProbe] = &[
    blocked_change(
        "plant a hook",
        "echo evil > .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "plant a hook through a link",
        "ln -s .git g; echo evil > g/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "plant a hook through /proc",
        "echo evil > /proc/self/cwd/.git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "plant a hook by a hard link",
        "ln file.txt .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "plant a hook by moving it there",
        "echo evil > x; mv x .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "plant a hook by way of another .git",
        "mv .git .git2; mkdir -p .git/hooks; echo evil > .git/hooks/x",
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "plant a hook by way of an exchanged .git",
        python!(
            "os.makedirs(\"fake/hooks\"); open(\"fake/hooks/x\", \"w\").close(); \
                libc.renameat2(-100, b\"fake\", -100, b\".git\", 2)"
        ),
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "plant a hook by way of other hooks",
        "mv .git/hooks .git/h2; mkdir .git/hooks; echo evil > .git/hooks/x",
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "hooks that are a link",
        "mkdir e; rm -rf .git/hooks; ln -s ../e .git/hooks",
        Changes("{ws}/.git/hooks"),
    ),
    blocked_change("permissions of hooks", "chmod 777 .git/hooks", Changes("{ws}/.git/hooks")),
    blocked_change(
        "a .git that is a file",
        "mv .git g; echo 'gitdir: evil' > .git",
        Changes("{ws}/.git"),
    ),
    blocked_change("git's settings", "git config core.hooksPath evil", Changes("{ws}/.git/config")),
    blocked_change(
        "git's settings, replaced",
        "cp .git/config c; echo '[core] hooksPath = x' >> c; mv -f c .git/config",
        Changes("{ws}/.git/config"),
    ),
    restored(
        "git's settings of a worktree",
        "echo evil > .git/config.worktree",
        Creates("{ws}/.git/config.worktree"),
    ),
    restored(
        "git's common folder",
        "echo ../evil > .git/commondir",
        Creates("{ws}/.git/commondir"),
    ),
    restored(
        "a hook of a module",
        "mkdir -p .git/modules/m/hooks; echo evil > .git/modules/m/hooks/x",
        Creates("{ws}/.git/modules/m/hooks/x"),
    ),
    blocked_change(
        "a hook of a nested repository",
        "echo evil > nested/.git/hooks/x",
        Creates("{ws}/nested/.git/hooks/x"),
    ),
    blocked_change(
        "another nested repository in its place",
        "mv nested n2; mkdir -p nested/.git/hooks; echo evil > nested/.git/hooks/x",
        Creates("{ws}/nested/.git/hooks/x"),
    ),
    restored(
        "a hook of a new repository",
        "mkdir -p fresh/.git/hooks; echo evil > fresh/.git/hooks/x",
        Creates("{ws}/fresh/.git/hooks/x"),
    ),
    restored(
        "a hook in other letters",
        "mkdir -p sub/.GIT/Hooks; echo evil > sub/.GIT/Hooks/x",
        Creates("{ws}/sub/.GIT/Hooks/x"),
    ),
    blocked_change(
        "a .git file that points elsewhere",
        "echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "a .git file, replaced",
        "mv worktree/.git worktree/g; echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "a .git file, overwritten by a move",
        "echo 'gitdir: /tmp/evil' > g; mv -f g worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "another worktree in its place",
        "mv worktree w2; mkdir worktree; echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    restored(
        "a new .git file",
        "mkdir fresh; echo 'gitdir: ../evil' > fresh/.git",
        Creates("{ws}/fresh/.git"),
    ),
    restored("a .git link", "mkdir fresh; ln -s ../evil fresh/.git", Creates("{ws}/fresh/.git")),
    restored(
        "settings in a folder that cannot be listed",
        "mkdir -p fresh/.git; echo '[core] fsmonitor = evil' > fresh/.git/config; chmod 311 \
            fresh/.git",
        Creates("{ws}/fresh/.git/config"),
    ),
    blocked_change(
        "a hook in a folder that cannot be listed",
        "echo evil > .git/hooks/pre-commit; chmod 311 .git/hooks",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    restored(
        "git's common folder in a folder that cannot be listed",
        "cp -r .git evil; echo '[core] fsmonitor = evil' >> evil/config; echo ../evil > \
            .git/commondir; chmod 311 .git",
        Creates("{ws}/.git/commondir"),
    ),
    restored(
        "a repository by another name",
        "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo '[core] \
            fsmonitor = evil' > docs/config",
        Creates("{ws}/docs/config"),
    ),
    restored(
        "a repository that points at another one",
        "mkdir -p docs x/objects x/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo ../x > \
            docs/commondir; echo '[core] worktree = .' > docs/config.worktree",
        Creates("{ws}/docs/commondir"),
    ),
    restored(
        "a repository of links",
        "mkdir -p x lib; cd lib; echo 'ref: refs/heads/m' > HEAD; ln -s ../x objects; ln -s ../x \
            refs; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/lib/config"),
    ),
    restored(
        "a repository of executable files",
        "mkdir lib; cd lib; ln -s refs/heads/m HEAD; : > objects; : > refs; chmod +x objects \
            refs; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/lib/config"),
    ),
    restored(
        "a repository in what looks like one",
        "for d in lib lib/src; do mkdir -p $d/objects $d/refs; echo 'ref: refs/heads/m' > \
            $d/HEAD; done; echo '[core] fsmonitor = evil' > lib/src/config",
        Creates("{ws}/lib/src/config"),
    ),
    restored(
        "a repository in what git stores",
        "mkdir -p .git/logs/x/objects .git/logs/x/refs; cd .git/logs/x; echo 'ref: refs/heads/m' \
            > HEAD; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/.git/logs/x/config"),
    ),
    restored(
        "a repository in a secret",
        "mkdir -p x.pem/objects x.pem/refs; cd x.pem; echo 'ref: refs/heads/m' > HEAD; echo \
            '[core] fsmonitor = evil' > config",
        Creates("{ws}/x.pem/config"),
    ),
    restored(
        "tasks of an editor in what git stores",
        "mkdir -p .git/objects/x/.vscode; echo evil > .git/objects/x/.vscode/tasks.json",
        Creates("{ws}/.git/objects/x/.vscode"),
    ),
    restored(
        "tasks of an editor in a secret",
        "mkdir -p x.pem/.vscode; echo evil > x.pem/.vscode/tasks.json",
        Creates("{ws}/x.pem/.vscode"),
    ),
    restored(
        "settings of a new repository by another name of theirs",
        "git init -q fresh && ln fresh/.git/config x",
        Creates("{ws}/fresh/.git/config"),
    ),
    blocked_change(
        "a hook where the settings say",
        "echo evil > named/hooks/pre-commit",
        Changes("{ws}/named/hooks/pre-commit"),
    ),
    blocked_change(
        "settings that the settings include",
        "echo evil > named/included",
        Changes("{ws}/named/included"),
    ),
    blocked_change(
        "what a protected link leads to",
        "echo evil > tools/servers.json",
        Changes("{ws}/tools/servers.json"),
    ),
    blocked_change(
        "another file in place of what a protected link leads to",
        "mv tools t2; mkdir tools; echo evil > tools/servers.json",
        Changes("{ws}/tools/servers.json"),
    ),
    blocked_change("the repository, moved away", "mv .git elsewhere", Changes("{ws}/.git/HEAD")),
    restored(
        "a hook beside a secret that is too large to keep",
        "truncate -s 65M x.pem; mkdir fresh; echo evil > fresh/.mcp.json; echo evil > \
            .git/hooks/pre-commit; true",
        Creates("{ws}/fresh/.mcp.json"),
    ),
    restored("modules", "echo evil > .gitmodules", Creates("{ws}/.gitmodules")),
    blocked_change(
        "tasks of an editor",
        "echo evil > .vscode/tasks.json",
        Changes("{ws}/.vscode/tasks.json"),
    ),
    restored(
        "new settings of an editor",
        "mkdir .idea; echo evil > .idea/workspace.xml",
        Creates("{ws}/.idea/workspace.xml"),
    ),
    restored(
        "settings of an editor in a folder that cannot be changed",
        "mkdir .idea; echo evil > .idea/workspace.xml; chmod 555 .idea",
        Creates("{ws}/.idea/workspace.xml"),
    ),
    restored(
        "settings of an editor that are a link",
        "mkdir e; ln -s e .idea",
        Creates("{ws}/.idea"),
    ),
    restored(
        "a development container",
        "mkdir -p .devcontainer; echo evil > .devcontainer/devcontainer.json",
        Creates("{ws}/.devcontainer/devcontainer.json"),
    ),
    restored("servers of an agent", "echo evil > .mcp.json", Creates("{ws}/.mcp.json")),
    restored(
        "settings of an agent",
        "mkdir -p sub/.claude; echo evil > sub/.claude/settings.json",
        Creates("{ws}/sub/.claude/settings.json"),
    ),
    restored(
        "this program's own settings",
        "mkdir .cofferdam; echo evil > .cofferdam/policy.toml",
        Creates("{ws}/.cofferdam/policy.toml"),
    ),
    restored("what runs on entering a folder", "echo evil > .envrc", Creates("{ws}/.envrc")),
    restored("start files of a shell", "echo evil > .bashrc", Creates("{ws}/.bashrc")),
    blocked_change("change a secret", "echo x >> .env", Changes("{ws}/.env")),
    blocked_change("replace a secret", "rm -f .env; echo x > .env", Changes("{ws}/.env")),
    blocked_change(
        "another secret in its place",
        "mv deploy d2; mkdir deploy; echo mine > deploy/id_ed25519",
        Changes("{ws}/deploy/id_ed25519"),
    ),
    allowed("read a secret", "cat .env", Output("env-secret"), HIDDEN),
    allowed("read a secret through a link", "ln -s .env e; cat e", Output("env-secret"), HIDDEN),
    allowed("read a secret through a hard link", "ln .env e; cat e", Output("env-secret"), HIDDEN),
    allowed("read a secret by another name", "mv .env e; cat e", Output("env-secret"), HIDDEN),
    allowed(
        "read a secret without its mask",
        "umount .env 2> /dev/null; cat .env",
        Output("env-secret"),
        HIDDEN,
    ),
    allowed(
        "read a secret in a folder that moved",
        "mv deploy d2; cat d2/id_ed25519; cat deploy/id_ed25519",
        Output("key-secret"),
        HIDDEN,
    ),
    allowed("read a private key", "cat deploy/id_ed25519", Output("key-secret"), HIDDEN),
];
