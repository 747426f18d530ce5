//! What every component has to stand, whatever it is for, and what its author expects of it.
//!
//! The author's [`ConformanceCase`]s come first; they also tell how a tool is called so that it
//! works, which the general checks then vary: another script in a file's name, an input of a
//! megabyte, a path to nothing, no grant at all. A tool may answer or refuse what it is given; what
//! it must not do is crash, hang, or say that it did what it cannot have done.

mod bench;
mod case;
mod check;

pub use bench::check_conformance;
pub use case::{ConformanceCase, ConformanceCaseError, read_cases};
pub use check::{CheckResult, ConformanceCheck};
