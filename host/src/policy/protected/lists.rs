//! The built-in lists of what is protected.

/// Directories that are [`super::Protected::Pinned`]. As a file or as a link, `.git` says where hooks are, so it is no less dangerous.
pub(super) const PINNED: &[&str] = &[".git", ".git/modules", ".git/modules/*", ".git/worktrees", ".git/worktrees/*"];

/// Paths that are [`super::Protected::ReadOnly`].
pub(super) const READ_ONLY: &[&str] = &[
    // git runs what these name.
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
    ".git/modules/**/hooks",
    ".git/modules/**/config",
    ".git/modules/**/config.worktree",
    ".git/modules/**/commondir",
    ".git/worktrees/*/config.worktree",
    ".git/worktrees/*/commondir",
    ".git/worktrees/*/gitdir",
    ".gitmodules",
    ".gitconfig",
    // This program's own.
    ".cofferdam",
    // direnv runs it on the way into a folder. It is hidden too: most hold keys.
    ".envrc",
    // Editors and agents run what is in these when a folder is opened.
    ".vscode",
    "*.code-workspace",
    ".idea",
    ".zed",
    ".devcontainer",
    ".devcontainer.json",
    ".mcp.json",
    ".claude",
    ".codex",
    ".cursor",
    ".exrc",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    // It says what npm runs scripts with, and from where it takes packages. npm needs to read it.
    ".npmrc",
    // Shells run these when they start.
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".config/fish",
];

/// Paths that are [`super::Protected::Hidden`].
pub(super) const HIDDEN: &[&str] = &[
    // What programs are told in secret.
    ".env",
    ".env.*",
    ".env-*",
    ".env_*",
    ".envrc",
    ".envrc.*",
    // Private keys.
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    ".ssh",
    ".gnupg",
    // Where tools keep passwords and tokens.
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh/hosts.yml",
    ".config/gcloud",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings-security.xml",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".htpasswd",
    ".docker/config.json",
    ".kube/config",
    ".aws",
    ".azure",
];

/// What would be hidden by its name and is there to be read.
pub(super) const SHOWN: &[&str] = &[
    ".env*.example",
    ".env*.sample",
    ".env*.template",
    ".env*.tmpl",
    ".env*.dist",
    ".env*.defaults",
    "*.pub.pem",
    "*.pub.key",
    // The certificates of public authorities, without which programs connect to nobody.
    "cacert.pem",
    "ca-bundle.pem",
    "ca-certificates.pem",
    "roots.pem",
    "certifi/*.pem",
];
