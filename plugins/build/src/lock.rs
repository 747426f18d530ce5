//! Which versions of which packages a plugin is built from, out of `Cargo.lock`.
//!
//! Only these make a component stale. Were the whole file to count, then each new version of
//! anything that only the host needs would ask for a new build of every plugin.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// A line for each package that `direct` names or leads to, with its version and checksum.
///
/// The lock file does not tell a workspace member's dependencies for tests from the others, so
/// these are not followed: the caller names what a member depends on.
pub(crate) fn closure(root: &Path, direct: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let path = root.join("Cargo.lock");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    lines(&text, direct).map_err(|error| format!("{}: {error}", path.display()))
}

fn lines(lock: &str, direct: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let lock: Lock = toml::from_str(lock).map_err(|error| error.to_string())?;
    let mut by_name: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in &lock.package {
        by_name.entry(&package.name).or_default().push(package);
    }
    let mut lines = BTreeSet::new();
    let mut open: Vec<&str> = direct.iter().map(String::as_str).collect();
    while let Some(dependency) = open.pop() {
        // `name`, or `name version` where several versions are locked.
        let (name, version) = match dependency.split_once(' ') {
            Some((name, rest)) => (name, rest.split(' ').next()),
            None => (dependency, None),
        };
        let packages = by_name.get(name).ok_or_else(|| format!("`{name}` is not in it"))?;
        for package in packages
            .iter()
            .filter(|package| version.is_none_or(|version| version == package.version))
        {
            let checksum = package.checksum.as_deref().unwrap_or("-");
            if lines.insert(format!("{} {} {checksum}", package.name, package.version))
                && package.source.is_some()
            {
                open.extend(package.dependencies.iter().map(String::as_str));
            }
        }
    }
    Ok(lines.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"
        version = 4
        [[package]]
        name = "member"
        version = "0.1.0"
        dependencies = ["only-in-tests"]
        [[package]]
        name = "a"
        version = "1.0.0"
        source = "registry"
        checksum = "aa"
        dependencies = ["b 2.0.0"]
        [[package]]
        name = "b"
        version = "1.0.0"
        source = "registry"
        [[package]]
        name = "b"
        version = "2.0.0"
        source = "registry"
        [[package]]
        name = "only-in-tests"
        version = "1.0.0"
        source = "registry"
    "#;

    #[test]
    fn only_what_is_reached_counts() {
        let direct = ["a", "member"].map(str::to_owned).into();
        assert_eq!(
            lines(LOCK, &direct),
            Ok(vec!["a 1.0.0 aa".into(), "b 2.0.0 -".into(), "member 0.1.0 -".into()])
        );
    }

    #[test]
    fn a_package_that_is_not_locked_is_an_error() {
        assert_eq!(lines(LOCK, &["c".to_owned()].into()), Err("`c` is not in it".into()));
    }
}
