//! The registries of cargo: those of its configuration, and those whose index the user has used.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::FoundHosts;

/// The length of the hash at the end of the name of an index directory.
const HASH_LEN: usize = 16;

/// The file `config.json` of an index.
#[derive(Deserialize)]
struct IndexConfig {
    dl: String,
}

pub(super) fn find(found: &mut FoundHosts<'_>) {
    let Some(home) = found.variable("CARGO_HOME").or_else(|| found.home(".cargo")) else { return };
    for name in ["config.toml", "config"] {
        let file = home.join(name);
        if let Some(table) = found.read(&file).and_then(|text| text.parse::<Table>().ok()) {
            add_registries(found, &table, &file);
        }
    }
    for directory in found.list(&home.join("registry/index")) {
        add_index(found, &directory);
    }
}

fn add_registries(found: &mut FoundHosts<'_>, table: &Table, file: &Path) {
    for (section, keys) in [("registries", &["index"][..]), ("source", &["registry", "git"])] {
        let Some(entries) = table.get(section).and_then(|value| value.as_table()) else { continue };
        let urls = entries.values().flat_map(|entry| keys.iter().filter_map(|key| entry.get(key)));
        for url in urls.filter_map(|value| value.as_str()) {
            found.add_url(url, file);
        }
    }
}

/// Adds the host of an index, such as `index.example.com-0123456789abcdef`, and the host of its
/// downloads.
fn add_index(found: &mut FoundHosts<'_>, directory: &Path) {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((host, hash)) = name.rsplit_once('-') else { return };
    let is_hash = hash.len() == HASH_LEN && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash {
        return;
    }
    found.add_url(&format!("https://{host}/"), directory);
    let file = directory.join("config.json");
    let config = found.read(&file).and_then(|text| serde_json::from_str::<IndexConfig>(&text).ok());
    if let Some(config) = config {
        found.add_url(&config.dl, &file);
    }
}
