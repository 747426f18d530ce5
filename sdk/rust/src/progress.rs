//! Telling the user how far a long call is.

use crate::lent::progress as host;

/// Shows a line, of which the first 200 characters count. Calls beyond ten in a second are dropped.
pub fn report(message: &str) {
    host::report(message);
}
