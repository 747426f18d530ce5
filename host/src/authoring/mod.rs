//! Writing plugins: a project from a template, its build into a component, and what every component
//! has to stand.
//!
//! A [`PluginProject`] is a folder with a `plugin.toml`, the source in one of the
//! [`PluginLanguage`]s, the contract under `wit/`, and `cases.json`, what its tools are expected to
//! answer. [`build`](build::build) turns it into a component with the toolchain of its language,
//! which is installed from the language's own registry if it is missing. [`conformance`] runs a
//! component against its cases, and against what no tool may do whatever it is for.

pub mod build;
pub mod conformance;
mod language;
mod name;
mod project;
mod template;

pub use language::{PluginLanguage, UnknownLanguage};
pub use name::{InvalidName, PluginName};
pub use project::{PluginProject, ProjectError};
