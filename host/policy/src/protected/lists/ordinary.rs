//! Files that can run code and have no special treatment. The list documents that choice, and tests
//! check it.

use super::{ListedPathEntry, entry};

/// The paths of [`super::BuiltInList::Ordinary`].
pub(super) const ORDINARY: &[ListedPathEntry] = &[
    entry("BUILD.bazel", "source of a build; people change it daily"),
    entry("CMakeLists.txt", "source of a build; people change it daily"),
    entry("Cargo.toml", "people change it with every dependency"),
    entry("Dockerfile", "source of an image; runs only in a build that somebody starts"),
    entry("Gemfile", "people change it with every dependency"),
    entry("Makefile", "source of a build; people change it daily"),
    entry("Taskfile.yml", "source of a build; runs only when somebody names the task"),
    entry("build.gradle", "source of a build; people change it daily"),
    entry("build.rs", "source of a build; people change it as they change the code"),
    entry("composer.json", "people change it with every dependency"),
    entry("conftest.py", "source of tests; people change it daily"),
    entry("docker-compose.yml", "runs only when somebody starts it"),
    entry("go.mod", "people change it with every dependency"),
    entry("justfile", "source of a build; runs only when somebody names the recipe"),
    entry("noxfile.py", "source of tests; runs only when somebody starts it"),
    entry("package.json", "people change it with every dependency; the diff shows its scripts"),
    entry("pom.xml", "people change it with every dependency"),
    entry("pyproject.toml", "people change it with every dependency"),
    entry("setup.py", "source of a build; people change it with every dependency"),
    entry("tox.ini", "source of tests; runs only when somebody starts it"),
    entry("vite.config.ts", "source of a build; runs only in a build that somebody starts"),
];
