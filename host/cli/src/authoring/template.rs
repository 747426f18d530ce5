//! Templates of new projects: the contract, the SDK of the language, and one working tool.
//!
//! The templates in `sdk/` are a plugin called `count_lines`. A new project is a copy with its own
//! name instead.

use std::collections::BTreeMap;

use include_dir::{Dir, include_dir};

use super::{PluginLanguage, PluginName};

static WIT: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../wit");
/// The part of `wasi:http` that the SDKs use, and what it depends on.
static HTTP: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/wit");
static RUST_SDK: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/rust/src");
static RUST: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/rust-template");
static PYTHON: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/python");
static JAVASCRIPT: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/javascript");
static C: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/c");
static GO: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/go");
/// The runtime of the Go bindings, which the build script copies to `OUT_DIR`.
static GO_RUNTIME: Dir<'_> = include_dir!("$OUT_DIR/go-runtime");
const CASES: &str = include_str!("../../../../sdk/cases.json");
const WORKSPACE_MANIFEST: &str = include_str!("../../../../Cargo.toml");
const SDK_MANIFEST: &str = include_str!("../../../../sdk/rust/Cargo.toml");

/// Returns the paths and contents of a new project's files, sorted by path.
pub(super) fn template_files(
    name: &PluginName,
    language: PluginLanguage,
) -> impl Iterator<Item = (String, String)> {
    let mut files = BTreeMap::from([("cases.json".to_owned(), CASES.to_owned())]);
    match language {
        // The SDK expects the contract two directories up and contains the world itself.
        PluginLanguage::Rust => {
            add_contract(&mut files, "wit");
            add_directory(&mut files, &RUST_SDK, "sdk/rust/src");
            add_directory(&mut files, &RUST, "");
            files.remove("sdk.toml");
            files.insert("sdk/rust/Cargo.toml".into(), sdk_manifest());
        }
        PluginLanguage::Python => {
            add_world(&mut files, &PYTHON, WORLD);
            add_http(&mut files);
        }
        PluginLanguage::JavaScript => add_world(&mut files, &JAVASCRIPT, WORLD_WITH_WASI),
        PluginLanguage::C => {
            add_world(&mut files, &C, FULL_WORLD);
            add_http(&mut files);
        }
        PluginLanguage::Go => {
            add_world(&mut files, &GO, FULL_WORLD);
            add_http(&mut files);
            add_directory(&mut files, &GO_RUNTIME, "wit-runtime");
        }
    }
    let (snake, kebab, camel) = (name.to_string(), name.to_kebab_case(), to_camel_case(name));
    files.into_iter().map(move |(path, text)| {
        // The repository stores the template's `.gitignore` as `gitignore`, so that its rules do
        // not apply there.
        let path = if path == "gitignore" { ".gitignore".to_owned() } else { path };
        (
            path,
            text.replace("count_lines", &snake)
                .replace("count-lines", &kebab)
                .replace("CountLines", &camel),
        )
    })
}

/// For languages whose toolchain drops unused imports.
const FULL_WORLD: &str = "package local:count-lines;

world count-lines {
  include cofferdam:plugin/plugin-full@0.2.0;
  import wasi:http/outgoing-handler@0.2.0;
}
";

const WORLD: &str = "package local:count-lines;

world count-lines {
  include cofferdam:plugin/plugin@0.2.0;
  // Each interface of the host that the tools use needs an import, such as
  // import cofferdam:plugin/state@0.2.0;
  // import wasi:http/outgoing-handler@0.2.0;
}
";

const WORLD_WITH_WASI: &str = "package local:count-lines;

world count-lines {
  include cofferdam:plugin/plugin@0.2.0;
  import wasi:clocks/monotonic-clock@0.2.12;
  import wasi:filesystem/preopens@0.2.12;
  import wasi:filesystem/types@0.2.12;
  // Each interface of the host that the tools use needs an import, such as
  // import cofferdam:plugin/state@0.2.0;
}
";

fn add_world(files: &mut BTreeMap<String, String>, sdk: &Dir<'_>, world: &str) {
    add_contract(files, "wit/deps/cofferdam");
    files.insert("wit/world.wit".into(), world.to_owned());
    add_directory(files, sdk, "");
}

/// Adds the WIT files that HTTP requests need. The toolchain of JavaScript cannot import them.
fn add_http(files: &mut BTreeMap<String, String>) {
    for file in HTTP.files() {
        let name = file.path().file_stem().unwrap_or_default().to_string_lossy();
        let path = format!("wit/deps/{name}/{name}.wit");
        files.insert(path, file.contents_utf8().unwrap_or_default().to_owned());
    }
}

/// Adds the WIT files of the contract in the directory `below`, and those that it depends on in
/// `wit/deps`.
fn add_contract(files: &mut BTreeMap<String, String>, below: &str) {
    let mut contract = BTreeMap::new();
    add_directory(&mut contract, &WIT, "");
    let wit = contract.into_iter().filter(|(path, _)| path.ends_with(".wit"));
    files.extend(wit.map(|(path, text)| match path.strip_prefix("deps/") {
        Some(rest) => (format!("wit/deps/{rest}"), text),
        None => (format!("{below}/{path}"), text),
    }));
}

/// Adds the files of an SDK directory at the path `below`. Files in its `template` directory go to
/// the top.
fn add_directory(files: &mut BTreeMap<String, String>, dir: &Dir<'_>, below: &str) {
    for file in dir.files() {
        let path = file.path().to_string_lossy();
        let path = path.strip_prefix("template/").unwrap_or(&path);
        let path = if below.is_empty() { path.to_owned() } else { format!("{below}/{path}") };
        files.insert(path, file.contents_utf8().unwrap_or_default().to_owned());
    }
    for inner in dir.dirs() {
        add_directory(files, inner, below);
    }
}

/// Builds the SDK's manifest with the dependency versions of this workspace.
fn sdk_manifest() -> String {
    let head = RUST.get_file("sdk.toml").and_then(|file| file.contents_utf8()).unwrap_or_default();
    let mut text = head.to_owned();
    let ours: toml::Table = WORKSPACE_MANIFEST.parse().unwrap_or_default();
    let sdk: toml::Table = SDK_MANIFEST.parse().unwrap_or_default();
    let versions = ours.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let given = |wanted: &toml::Table| {
        toml::Value::Table(
            wanted
                .iter()
                .map(|(name, wanted)| (name.clone(), workspace_dependency(versions, name, wanted)))
                .collect(),
        )
    };
    let of = |table: &toml::Table| {
        table
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .map(|wanted| ("dependencies".to_owned(), given(wanted)))
    };
    let targets = sdk.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let targets = targets.filter_map(|(target, table)| {
        Some((target.clone(), toml::Value::Table(of(table.as_table()?).into_iter().collect())))
    });
    let mut table: toml::Table = of(&sdk).into_iter().collect();
    table.insert("target".into(), toml::Value::Table(targets.collect()));
    text.push_str(&toml::to_string(&table).unwrap_or_default());
    text
}

/// Returns a dependency with the workspace's version and features, plus the features that the SDK
/// adds.
fn workspace_dependency(
    versions: Option<&toml::Value>,
    name: &str,
    wanted: &toml::Value,
) -> toml::Value {
    let mut given = match versions.and_then(|versions| versions.get(name)) {
        Some(toml::Value::Table(table)) => table.clone(),
        Some(version) => toml::Table::from_iter([("version".to_owned(), version.clone())]),
        None => toml::Table::new(),
    };
    let more = wanted.get("features").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    if !more.is_empty() {
        let features = given.entry("features").or_insert_with(|| toml::Value::Array(Vec::new()));
        if let Some(features) = features.as_array_mut() {
            features.extend(more.iter().cloned());
        }
    }
    toml::Value::Table(given)
}

fn to_camel_case(name: &PluginName) -> String {
    name.as_str()
        .split('_')
        .flat_map(|word| {
            word.chars().enumerate().map(|(i, c)| if i == 0 { c.to_ascii_uppercase() } else { c })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template_paths(language: PluginLanguage) -> Vec<String> {
        template_files(&"word_count".parse().unwrap(), language)
            .map(|(path, _)| path)
            .filter(|path| !path.starts_with("wit/deps/"))
            .collect()
    }

    #[test]
    fn a_project_contains_a_tool_the_sdk_and_the_contract() {
        let python: Vec<String> = template_paths(PluginLanguage::Python)
            .into_iter()
            .filter(|path| !path.starts_with("cofferdam/"))
            .collect();
        assert_eq!(python, ["cases.json", ".gitignore", "plugin.py", "wit/world.wit"]);
        let contract: Vec<String> =
            template_files(&"word_count".parse().unwrap(), PluginLanguage::Go)
                .map(|(path, _)| path)
                .filter(|path| path.starts_with("wit/deps/"))
                .collect();
        for path in
            ["wit/deps/clocks/clocks.wit", "wit/deps/cofferdam/tools.wit", "wit/deps/io/io.wit"]
        {
            assert!(contract.iter().any(|found| found == path), "{path}: {contract:?}");
        }
        assert!(contract.iter().all(|path| path.ends_with(".wit")), "{contract:?}");
        assert!(template_paths(PluginLanguage::Rust).contains(&"wit/world.wit".to_owned()));
        assert!(template_paths(PluginLanguage::Rust).contains(&"sdk/rust/src/lib.rs".to_owned()));
    }

    #[test]
    fn the_sdk_manifest_has_the_versions_of_this_workspace() {
        let manifest: toml::Table = sdk_manifest().parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        assert!(dependencies["serde"].get("version").is_some());
        let features = dependencies["wit-bindgen"]["features"].as_array().unwrap();
        assert!(features.iter().any(|feature| feature.as_str() == Some("macros")));
        // Target-specific dependencies of components and of tests are included.
        let targets: Vec<&str> = manifest["target"]
            .as_table()
            .unwrap()
            .values()
            .flat_map(|target| target["dependencies"].as_table().unwrap().keys())
            .map(String::as_str)
            .collect();
        assert_eq!(targets, ["ignore", "wasip2"]);
    }
}
