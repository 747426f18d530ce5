//! Files that can run code and have no special treatment. The list documents that choice, and tests
//! check it.

use super::{ListedPathEntry, entry};

/// The paths of [`super::BuiltInList::Ordinary`].
pub(super) const ORDINARY: &[ListedPathEntry] = &[
    entry("BUILD.bazel", "Bazel runs it in builds; it is edited daily"),
    entry("CMakeLists.txt", "CMake runs it in builds; it is edited daily"),
    entry("Cargo.toml", "builds can run code from it; it is edited whenever dependencies change"),
    entry("Dockerfile", "Docker runs it only when somebody builds the image"),
    entry("Gemfile", "builds can run code from it; it is edited whenever dependencies change"),
    entry("Makefile", "make runs it in builds; it is edited daily"),
    entry("Taskfile.yml", "Task runs it only when somebody starts a task"),
    entry("build.gradle", "Gradle runs it in builds; it is edited daily"),
    entry("build.rs", "Cargo runs it in builds; it is edited like other source code"),
    entry(
        "composer.json",
        "builds can run code from it; it is edited whenever dependencies change",
    ),
    entry("conftest.py", "pytest runs it; it is edited daily, like other tests"),
    entry("docker-compose.yml", "Docker Compose runs it only when somebody starts the containers"),
    entry("go.mod", "builds can run code from it; it is edited whenever dependencies change"),
    entry("justfile", "just runs it only when somebody starts a recipe"),
    entry("noxfile.py", "Nox runs it only when somebody starts the tests"),
    entry(
        "package.json",
        "package managers run scripts in it; it is edited whenever dependencies change",
    ),
    entry("pom.xml", "builds can run code from it; it is edited whenever dependencies change"),
    entry(
        "pyproject.toml",
        "builds can run code from it; it is edited whenever dependencies change",
    ),
    entry("setup.py", "pip runs it in builds; it is edited whenever dependencies change"),
    entry("tox.ini", "tox runs it only when somebody starts the tests"),
    entry(
        "vite.config.ts",
        "Vite runs it only when somebody starts a build or a development server",
    ),
];
