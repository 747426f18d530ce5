//! Forges of git repositories: the well-known ones, and those of the user's git configuration.

use super::FoundHosts;

/// Well-known forges, over HTTPS and SSH.
const FORGES: [&str; 5] =
    ["github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "git.sr.ht"];
/// The text that stands for the file of a well-known forge.
const BUILT_IN: &str = "built-in list";

pub(super) fn find(found: &mut FoundHosts<'_>) {
    for forge in FORGES {
        for pattern in [forge.to_owned(), format!("{forge}:22")] {
            found.hosts.insert(pattern, BUILT_IN.to_owned());
        }
    }
    let files = [
        Some(found.system("/etc/gitconfig")),
        found.config_home("git/config"),
        found.variable("GIT_CONFIG_GLOBAL").or_else(|| found.home(".gitconfig")),
    ];
    for file in files.into_iter().flatten() {
        let Some(text) = found.read(&file) else { continue };
        // `[url "https://example.com/"]` and `[credential "https://example.com"]`
        for line in text.lines().map(str::trim) {
            let Some(section) = line.strip_prefix('[') else { continue };
            let mut parts = section.splitn(3, '"');
            let name = parts.next().unwrap_or_default().trim();
            let url = parts.next().unwrap_or_default();
            if ["url", "credential"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
                found.add_url(url, &file);
            }
        }
    }
}
