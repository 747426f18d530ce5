//! What must hold of any bytes at all, one function for each fuzz target of `tests/fuzz`.
//!
//! They are functions of this crate, so that `cargo test` runs them too, on the committed corpora
//! and on what random changes make of these; a fuzzer needs a compiler of its own and a long night.

#![expect(clippy::expect_used, reason = "what must hold and does not is what a fuzzer looks for")]

mod arguments;
mod journal;
mod paths;
mod policy;
mod repair;
mod stream;

pub use arguments::arguments;
pub use journal::journal;
pub use paths::paths;
pub use policy::policy;
pub use repair::repair;
pub use stream::stream;

/// What must hold of these bytes.
pub type Target = fn(&[u8]);

/// Every target: its name, which is that of its corpus too, and its function.
pub const TARGETS: [(&str, Target); 6] = [
    ("arguments", arguments),
    ("journal", journal),
    ("paths", paths),
    ("policy", policy),
    ("repair", repair),
    ("stream", stream),
];

/// Parts the fields of an input: ASCII's own separator, which no text that matters has.
const SEPARATOR: char = '\u{1e}';

/// The fields of an input; those that are not there are empty. `None` if it is no text.
fn fields<const N: usize>(data: &[u8]) -> Option<[&str; N]> {
    let mut parts = std::str::from_utf8(data).ok()?.splitn(N, SEPARATOR);
    Some(std::array::from_fn(|_| parts.next().unwrap_or_default()))
}
