//! The caps that the user configured.

use std::collections::BTreeMap;

use super::caps::Caps;

/// The caps that the user configured, for all tools and for single tools.
#[derive(Clone, Debug, Default)]
pub struct ChosenCaps {
    /// The caps of all tools.
    pub defaults: Caps,
    /// The caps of single tools, by name. They override the defaults.
    pub by_tool: BTreeMap<String, Caps>,
}

impl ChosenCaps {
    /// Returns the caps of one tool. Names of tools are compared without case, because no two tools
    /// differ only in case.
    pub fn for_tool(&self, tool: &str) -> Caps {
        let specific = self
            .by_tool
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(tool))
            .map(|(_, caps)| caps);
        specific.map_or_else(|| self.defaults.clone(), |caps| caps.or(&self.defaults))
    }
}
