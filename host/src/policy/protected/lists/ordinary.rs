//! Files that can run code and are decided like any other file. They are listed so that the choice can be read and tested.

use super::{ListedPath, path};

/// Paths of [`super::BuiltInList::Ordinary`].
pub(super) const ORDINARY: &[ListedPath] = &[
    path("BUILD.bazel", "source of a build; people change it daily"),
    path("CMakeLists.txt", "source of a build; people change it daily"),
    path("Cargo.toml", "people change it with every dependency"),
    path("Dockerfile", "source of an image; runs only in a build that somebody starts"),
    path("Gemfile", "people change it with every dependency"),
    path("Makefile", "source of a build; people change it daily"),
    path("Taskfile.yml", "source of a build; runs only when somebody names the task"),
    path("build.gradle", "source of a build; people change it daily"),
    path("build.rs", "source of a build; people change it as they change the code"),
    path("composer.json", "people change it with every dependency"),
    path("conftest.py", "source of tests; people change it daily"),
    path("docker-compose.yml", "runs only when somebody starts it"),
    path("go.mod", "people change it with every dependency"),
    path("justfile", "source of a build; runs only when somebody names the recipe"),
    path("noxfile.py", "source of tests; runs only when somebody starts it"),
    path("package.json", "people change it with every dependency; the diff shows its scripts"),
    path("pom.xml", "people change it with every dependency"),
    path("pyproject.toml", "people change it with every dependency"),
    path("setup.py", "source of a build; people change it with every dependency"),
    path("tox.ini", "source of tests; runs only when somebody starts it"),
    path("vite.config.ts", "source of a build; runs only in a build that somebody starts"),
];
