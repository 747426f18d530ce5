//! Plugin development: projects from templates, builds, and conformance tests.
//!
//! A [`PluginProject`] is a directory with a `plugin.toml`, the source in a [`PluginLanguage`], the
//! contract under `wit/`, and `cases.json` with the expected results of its tools.
//! [`build`](build::build) compiles it to a component with the toolchain of its language, and
//! installs the toolchain from the language's own registry if it is missing. [`conformance`] runs a
//! component against its cases and against rules that every tool must follow.

pub(crate) mod build;
pub(crate) mod conformance;
mod language;
mod name;
mod project;
mod template;

pub(crate) use language::PluginLanguage;
pub(crate) use name::PluginName;
pub(crate) use project::PluginProject;
