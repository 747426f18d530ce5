//! Whether sources, record and components agree.

use std::fmt;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::{Record, plugins, record, sources};

/// Something that does not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The plugin was never built.
    NotBuilt(String),
    /// What the plugin is built from has changed since.
    Stale(String),
    /// The component is not the one that was built.
    Altered(String),
    /// A component is recorded whose plugin is gone.
    Gone(String),
    /// A file could not be read or makes no sense.
    Unreadable(String),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt(plugin) => {
                write!(f, "{plugin}: never built; run `cargo plugins build {plugin}`")
            }
            Self::Stale(plugin) => {
                write!(
                    f,
                    "{plugin}: its sources have changed since it was built; run `cargo plugins \
                        build {plugin}`"
                )
            }
            Self::Altered(plugin) => {
                write!(
                    f,
                    "{plugin}: host/core/embedded/{plugin}.wasm differs from the recorded build; \
                        run `cargo plugins build {plugin}`"
                )
            }
            Self::Gone(plugin) => write!(
                f,
                "{plugin}: plugins/{plugin} was removed; run `cargo plugins build` and delete \
                    host/core/embedded/{plugin}.wasm"
            ),
            Self::Unreadable(what) => f.write_str(what),
        }
    }
}

/// Compares the sources of all plugins of the workspace at `root` with the record, and the record
/// with the components.
///
/// It reads files and runs nothing.
pub fn check(root: &Path) -> Result<(), Vec<Mismatch>> {
    let all = plugins::plugins(root).map_err(|error| vec![Mismatch::Unreadable(error)])?;
    let record = Record::read(root).map_err(|error| vec![Mismatch::Unreadable(error)])?;
    let mut mismatches = Vec::new();
    for plugin in &all {
        let name = &plugin.name;
        let Some(entry) = record.plugins.get(name) else {
            mismatches.push(Mismatch::NotBuilt(name.clone()));
            continue;
        };
        match sources::hash(root, plugin) {
            Ok(hash) if hash == entry.sources => {}
            Ok(_) => mismatches.push(Mismatch::Stale(name.clone())),
            Err(error) => mismatches.push(Mismatch::Unreadable(error)),
        }
        match fs::read(record::component(root, name)) {
            Ok(component) if sources::hex(&Sha256::digest(&component)) == entry.sha256 => {}
            _ => mismatches.push(Mismatch::Altered(name.clone())),
        }
    }
    let gone = record.plugins.keys().filter(|name| !all.iter().any(|plugin| plugin.name == **name));
    mismatches.extend(gone.cloned().map(Mismatch::Gone));
    if mismatches.is_empty() { Ok(()) } else { Err(mismatches) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Plugin};

    type Result = std::result::Result<(), Box<dyn std::error::Error>>;

    const FILES: [(&str, &str); 7] = [
        (
            "Cargo.toml",
            "[workspace.dependencies]\nused = '1'\nunused = '1'\n[profile.plugin]\nlto = true",
        ),
        (
            "Cargo.lock",
            "package = [{ name = 'used', version = '1.0.0' }, { name = 'unused', version = \
                '1.0.0' }]",
        ),
        ("wit/world.wit", "package a:b;"),
        ("sdk/rust/Cargo.toml", "[dependencies]\nused = '1'"),
        ("plugins/p/Cargo.toml", "package.name = 'plugin-p'\nlib.crate-type = ['cdylib']"),
        ("plugins/p/src/lib.rs", "//! P."),
        ("host/core/embedded/p.wasm", "component"),
    ];

    /// A workspace with one plugin, built.
    fn workspace() -> std::result::Result<tempfile::TempDir, Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        for (path, text) in FILES {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(root.path()))?;
            fs::write(path, text)?;
        }
        let plugin = Plugin { name: "p".to_owned(), package: "plugin-p".to_owned() };
        let entry = Entry {
            sha256: sources::hex(&Sha256::digest("component")),
            size: 9,
            sources: sources::hash(root.path(), &plugin)?,
            toolchain: "by hand".to_owned(),
            reproduced: false,
        };
        Record { plugins: [("p".to_owned(), entry)].into() }.write(root.path())?;
        Ok(root)
    }

    /// What is found after a file of a workspace has another text.
    fn after(
        path: &str,
        text: &str,
    ) -> std::result::Result<Vec<Mismatch>, Box<dyn std::error::Error>> {
        let root = workspace()?;
        fs::write(root.path().join(path), text)?;
        Ok(check(root.path()).err().unwrap_or_default())
    }

    #[test]
    fn what_a_component_is_made_from_makes_it_stale() -> Result {
        for (path, text) in [
            ("wit/world.wit", "package a:c;"),
            ("wit/new.wit", ""),
            ("sdk/rust/Cargo.toml", "[dependencies]"),
            ("plugins/p/src/lib.rs", "//! Q."),
            ("Cargo.lock", &FILES[1].1.replacen("1.0.0", "1.0.1", 1)),
            ("Cargo.toml", &FILES[0].1.replace("true", "false")),
        ] {
            assert_eq!(after(path, text)?, [Mismatch::Stale("p".to_owned())], "{path}");
        }
        Ok(())
    }

    #[test]
    fn nothing_else_does() -> Result {
        for (path, text) in [
            ("plugins/p/.hidden", "x"),
            (
                "Cargo.lock",
                &FILES[1].1.replace("'unused', version = '1.0.0'", "'unused', version = '2.0.0'"),
            ),
            ("Cargo.toml", &FILES[0].1.replace("unused = '1'", "unused = '2'")),
        ] {
            assert_eq!(after(path, text)?, [], "{path}");
        }
        Ok(())
    }

    #[test]
    fn a_component_that_was_not_built_from_here_is_found() -> Result {
        assert_eq!(
            after("host/core/embedded/p.wasm", "another")?,
            [Mismatch::Altered("p".to_owned())]
        );
        assert_eq!(
            after("host/core/embedded/record.json", r#"{"plugins":{}}"#)?,
            [Mismatch::NotBuilt("p".to_owned())]
        );
        assert_eq!(
            after("plugins/p/Cargo.toml", "package.name = 'p'")?,
            [Mismatch::Gone("p".to_owned())]
        );
        assert!(matches!(after("Cargo.lock", "")?.as_slice(), [Mismatch::Unreadable(_)]));
        Ok(())
    }
}
