//! The module proxy and the checksum database of go: those of the user's settings, or the defaults
//! of the toolchain.

use std::path::Path;

use super::FoundHosts;

pub(super) fn find(found: &mut FoundHosts<'_>) {
    let user = found.variable("GOENV").or_else(|| found.config_home("go/env"));
    let toolchain = found
        .variable("GOROOT")
        .or_else(|| Some(found.program("go")?.parent()?.parent()?.to_owned()))
        .unwrap_or_else(|| found.system("/usr/local/go"));
    let system = found.system("/usr/lib");
    let packaged = found.list(&system).into_iter().filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("go-"))
    });
    let defaults = [toolchain].into_iter().chain(packaged).map(|root| root.join("go.env"));
    let files: Vec<_> = user.into_iter().chain(defaults).collect();
    for key in ["GOPROXY", "GOSUMDB"] {
        // The first file with the key decides, as in go.
        let value = files.iter().find_map(|file| {
            let text = found.read(file)?;
            let value =
                text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
            Some((value.trim().to_owned(), file.clone()))
        });
        if let Some((value, file)) = value {
            add_value(found, key, &value, &file);
        }
    }
}

fn add_value(found: &mut FoundHosts<'_>, key: &str, value: &str, file: &Path) {
    if key == "GOPROXY" {
        // `direct` and `off` are no URLs.
        value.split([',', '|']).for_each(|url| found.add_url(url, file));
        return;
    }
    // `NAME`, `NAME+KEY` or `NAME+KEY URL`
    let mut words = value.split_whitespace();
    let name = words.next().and_then(|word| word.split('+').next()).unwrap_or_default();
    if name != "off" {
        let url = words.next().map_or_else(|| format!("https://{name}/"), str::to_owned);
        found.add_url(&url, file);
    }
}
