//! Reporting the progress of a long call to the user.

use crate::imports::progress as host;

/// Shows the first 200 characters of a line. The host ignores more than ten calls per second.
pub fn report(message: &str) {
    host::report(message);
}
