//! Settings of a line each, such as those of npm, pip and conda, without what in them is a secret.

use super::secrets::{is_secret_name, is_secret_value, without_passwords, without_proxy_user};

/// The settings without secrets, and whether that is less than there was.
pub(super) fn without_secrets(text: &str) -> (String, bool) {
    let kept = text.lines().filter(|line| !is_secret(line)).map(|line| without_addresses_in(line) + "\n");
    let clean: String = kept.collect();
    let has_changed = clean.trim_end() != text.trim_end();
    (clean, has_changed)
}

/// The same for text of any form, in which only addresses are told.
pub(super) fn without_addresses(text: &str) -> (String, bool) {
    let clean = without_passwords(text);
    let has_changed = clean != text;
    (clean, has_changed)
}

fn without_addresses_in(line: &str) -> String {
    match line.split_once('=') {
        Some((name, value)) if name.to_ascii_lowercase().contains("proxy") && value.contains('@') => {
            let blanks = &value[..value.len() - value.trim_start().len()];
            format!("{name}={blanks}{}", without_proxy_user(value.trim()))
        }
        Some(_) | None => without_passwords(line),
    }
}

fn is_secret(line: &str) -> bool {
    // In a key of npm's the address of the registry comes before the name, with a colon between them.
    let Some((key, value)) = line.split_once('=').or_else(|| line.split_once(": ")) else { return false };
    let name = key.trim().rsplit(['/', ':']).next().unwrap_or_default();
    let value = value.trim().trim_matches(['"', '\'']);
    let is_reference = value.starts_with('$') || matches!(value, "" | "true" | "false");
    !is_reference && (is_secret_name(name) || is_secret_value(&without_passwords(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_the_rest_is_what_it_was() {
        for (text, clean) in [
            ("//registry.example/:_authToken=SECRET\nfund=false\n", "fund=false\n"),
            (
                "//registry.example/:_authToken=${NPM_TOKEN}\nalways-auth=true\n",
                "//registry.example/:_authToken=${NPM_TOKEN}\nalways-auth=true\n",
            ),
            ("_auth = \"SECRET\"\nregistry=https://registry.example/\n", "registry=https://registry.example/\n"),
            ("[global]\nindex-url = https://u:SECRET@host/simple\n", "[global]\nindex-url = https://host/simple\n"),
            ("extra-index-url =\n    https://SECRET@host/simple\n", "extra-index-url =\n    https://host/simple\n"),
            ("channels:\n  - https://conda.example/t/SECRET/main\n", "channels:\n  - https://conda.example/main\n"),
            ("[global]\nproxy = u:SECRET@proxy:3128\ntimeout = 60\n", "[global]\nproxy = proxy:3128\ntimeout = 60\n"),
            (
                "export CARGO_REGISTRY_TOKEN=\"SECRET\"\nexport PATH=\"$HOME/.cargo/bin:$PATH\"\n",
                "export PATH=\"$HOME/.cargo/bin:$PATH\"\n",
            ),
            ("npmAuthToken: SECRET\nnodeLinker: node-modules\n", "nodeLinker: node-modules\n"),
        ] {
            assert_eq!(without_secrets(text), (clean.to_owned(), clean != text), "{text}");
        }
    }
}
