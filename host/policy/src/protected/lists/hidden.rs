//! Files with passwords, tokens and private keys, and exceptions for similar names without secrets.

use super::{ListedPathEntry, entry};

/// The paths with [`PathProtection::Hidden`](crate::PathProtection::Hidden).
pub(in crate::protected) const HIDDEN: &[ListedPathEntry] = &[
    entry("*.jks", "a private key, or a store of them"),
    entry("*.kdbx", "a private key, or a store of them"),
    entry("*.key", "a private key, or a store of them"),
    entry("*.keystore", "a private key, or a store of them"),
    entry("*.p12", "a private key, or a store of them"),
    entry("*.pem", "a private key, or a store of them"),
    entry("*.pfx", "a private key, or a store of them"),
    entry("*.ppk", "a private key, or a store of them"),
    entry(".aws", "tools store passwords or tokens in it"),
    entry(".azure", "tools store passwords or tokens in it"),
    entry(".cargo/credentials", "tokens of package registries"),
    entry(".cargo/credentials.toml", "tokens of package registries"),
    entry(".config/gcloud", "tools store passwords or tokens in it"),
    entry(".config/gh/hosts.yml", "tools store passwords or tokens in it"),
    entry(".config/git/credentials", "tools store passwords or tokens in it"),
    entry(".docker/config.json", "tools store passwords or tokens in it"),
    entry(".env", "programs read passwords and keys from it"),
    entry(".env-*", "programs read passwords and keys from it"),
    entry(".env.*", "programs read passwords and keys from it"),
    entry(".env_*", "programs read passwords and keys from it"),
    entry(".envrc", "direnv reads passwords and keys from it"),
    entry(".envrc.*", "direnv reads passwords and keys from it"),
    entry(".gem/credentials", "tools store passwords or tokens in it"),
    entry(".git-credentials", "tools store passwords or tokens in it"),
    entry(".git/credentials", "tools store passwords or tokens in it"),
    entry(".gnupg", "private keys of GnuPG"),
    entry(".htpasswd", "tools store passwords or tokens in it"),
    entry(".kube/config", "tools store passwords or tokens in it"),
    entry(".m2/settings-security.xml", "tools store passwords or tokens in it"),
    entry(".my.cnf", "tools store passwords or tokens in it"),
    entry(".netrc", "tools store passwords or tokens in it"),
    entry(".pgpass", "tools store passwords or tokens in it"),
    entry(".pypirc", "tools store passwords or tokens in it"),
    entry(".ssh", "private keys, and the settings of SSH"),
    entry(".terraform.d/credentials.tfrc.json", "tools store passwords or tokens in it"),
    entry(".vault-token", "tools store passwords or tokens in it"),
    entry("_netrc", "tools store passwords or tokens in it"),
    entry("id_dsa", "a private key, or a store of them"),
    entry("id_ecdsa", "a private key, or a store of them"),
    entry("id_ecdsa_sk", "a private key, or a store of them"),
    entry("id_ed25519", "a private key, or a store of them"),
    entry("id_ed25519_sk", "a private key, or a store of them"),
    entry("id_rsa", "a private key, or a store of them"),
];

/// Exceptions from [`HIDDEN`].
pub(in crate::protected) const HIDDEN_EXCEPTIONS: &[ListedPathEntry] = &[
    entry("*.pub.key", "a public key"),
    entry("*.pub.pem", "a public key"),
    entry(".env*.defaults", "an example without secrets"),
    entry(".env*.dist", "an example without secrets"),
    entry(".env*.example", "an example without secrets"),
    entry(".env*.sample", "an example without secrets"),
    entry(".env*.template", "an example without secrets"),
    entry(".env*.tmpl", "an example without secrets"),
    entry(
        "ca-bundle.pem",
        "certificates of public authorities, which programs need to connect to servers",
    ),
    entry(
        "ca-certificates.pem",
        "certificates of public authorities, which programs need to connect to servers",
    ),
    entry(
        "cacert.pem",
        "certificates of public authorities, which programs need to connect to servers",
    ),
    entry(
        "certifi/*.pem",
        "certificates of public authorities, which programs need to connect to servers",
    ),
    entry(
        "roots.pem",
        "certificates of public authorities, which programs need to connect to servers",
    ),
];
