//! The package sources of apt.

use std::path::Path;

use super::FoundHosts;

pub(super) fn find(found: &mut FoundHosts<'_>) {
    let mut files = vec![found.system("/etc/apt/sources.list")];
    files.extend(found.list(&found.system("/etc/apt/sources.list.d")));
    for file in files {
        let Some(text) = found.read(&file) else { continue };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => add_list(found, &text, &file),
            Some("sources") => add_sources(found, &text, &file),
            _ => {}
        }
    }
}

/// Adds the sources of a file with one source for each line.
fn add_list(found: &mut FoundHosts<'_>, text: &str, file: &Path) {
    for line in text.lines() {
        let code = line.split('#').next().unwrap_or_default();
        let mut words = code.split_whitespace();
        if words.next().is_some_and(|word| ["deb", "deb-src"].contains(&word)) {
            words.filter(|word| word.contains("://")).for_each(|url| found.add_url(url, file));
        }
    }
}

/// Adds the sources of a file in the format deb822.
fn add_sources(found: &mut FoundHosts<'_>, text: &str, file: &Path) {
    for paragraph in text.split("\n\n") {
        let lines = paragraph.lines().filter(|line| !line.starts_with('#'));
        let (mut is_in_uris, mut is_enabled, mut urls) = (false, true, Vec::new());
        for line in lines {
            if !line.starts_with([' ', '\t']) {
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                is_in_uris = name.eq_ignore_ascii_case("uris");
                if name.eq_ignore_ascii_case("enabled") {
                    is_enabled = !value.trim().eq_ignore_ascii_case("no");
                }
            }
            if is_in_uris {
                urls.extend(line.split_whitespace().filter(|word| word.contains("://")));
            }
        }
        if is_enabled {
            urls.into_iter().for_each(|url| found.add_url(url, file));
        }
    }
}
