//! The decision which plugins a host loads.

use std::path::Path;

use crate::config::resolve_links;
use crate::sandbox::LoadedPlugin;

/// Decides which plugins a host loads, and learns of slow steps.
///
/// A host without a review loads every plugin that its builder names and that the policy allows.
pub trait PluginReview {
    /// Returns the origins of a plugin that rules of the policy can match: its path with links
    /// resolved, and the address that it was downloaded from.
    fn origins(&self, path: &Path) -> Vec<String> {
        vec![resolve_links(path).display().to_string()]
    }

    /// Called before a component is compiled, which can take seconds. `name` is the name of a
    /// built-in plugin or a path.
    fn compilation_started(&self, name: &str) {
        let _ = name;
    }

    /// Decides whether a plugin is loaded, after its declaration was read and before it can be
    /// called.
    ///
    /// # Errors
    ///
    /// Returns the reason of a refusal. The host then works without the plugin.
    fn review(&mut self, path: &Path, plugin: &LoadedPlugin) -> Result<(), String> {
        let _ = (path, plugin);
        Ok(())
    }
}

/// Loads every plugin.
pub(crate) struct AcceptAll;

impl PluginReview for AcceptAll {}
