//! Which plugins there are: each directory of `plugins/` whose crate can become a component.

use std::fs;
use std::path::Path;

use toml::Table;

/// A plugin of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Of its directory, and of its component.
    pub name: String,
    /// Of its package.
    pub package: String,
}

/// All plugins, by name.
pub fn plugins(root: &Path) -> Result<Vec<Plugin>, String> {
    let directory = root.join("plugins");
    let mut plugins = Vec::new();
    for entry in
        fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?
    {
        let path = entry.map_err(|error| format!("{}: {error}", directory.display()))?.path();
        let manifest = path.join("Cargo.toml");
        if !manifest.is_file() {
            continue;
        }
        let manifest = read_manifest(&manifest)?;
        let name = path.file_name().and_then(|name| name.to_str());
        if let (true, Some(name), Some(package)) =
            (is_component(&manifest), name, package(&manifest))
        {
            plugins.push(Plugin { name: name.to_owned(), package: package.to_owned() });
        }
    }
    plugins.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(plugins)
}

/// The plugins with these names, or all without any.
pub fn select(plugins: Vec<Plugin>, names: &[String]) -> Result<Vec<Plugin>, String> {
    if let Some(unknown) =
        names.iter().find(|name| !plugins.iter().any(|plugin| plugin.name == **name))
    {
        let known: Vec<_> = plugins.iter().map(|plugin| plugin.name.as_str()).collect();
        return Err(format!("there is no plugin `{unknown}`; there are {}", known.join(", ")));
    }
    Ok(plugins
        .into_iter()
        .filter(|plugin| names.is_empty() || names.contains(&plugin.name))
        .collect())
}

pub(crate) fn read_manifest(path: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()))
}

fn package(manifest: &Table) -> Option<&str> {
    manifest.get("package")?.get("name")?.as_str()
}

fn is_component(manifest: &Table) -> bool {
    let types = manifest
        .get("lib")
        .and_then(|lib| lib.get("crate-type"))
        .and_then(|types| types.as_array());
    types.is_some_and(|types| types.iter().any(|name| name.as_str() == Some("cdylib")))
}
