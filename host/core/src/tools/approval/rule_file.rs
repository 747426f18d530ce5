//! The policy file of the user, to which the answer "always" adds rules.

use std::fmt;
use std::sync::Arc;

use crate::policy::LastingRule;

/// Adds a rule to a file, and shows a warning if that fails.
type AddRule = Arc<dyn Fn(&LastingRule) + Send + Sync>;

/// The policy file of the user, to which the answer "always" adds rules.
#[derive(Clone)]
pub struct UserRuleFile {
    name: String,
    add: AddRule,
}

impl UserRuleFile {
    /// Creates a file with this name. `add` adds a rule, and tells the user if that fails.
    pub fn new(
        name: impl Into<String>,
        add: impl Fn(&LastingRule) + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), add: Arc::new(add) }
    }

    /// Returns the path of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a rule.
    pub(super) fn add(&self, rule: &LastingRule) {
        (self.add)(rule);
    }
}

impl fmt::Debug for UserRuleFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserRuleFile").field("name", &self.name).finish_non_exhaustive()
    }
}
