//! Conformance tests: the cases of a plugin's author, and rules that every tool must follow.
//!
//! The author's [`ConformanceCase`]s run first. A successful case also shows how to call the tool;
//! the general checks vary it: a file name in another script, a large input, a missing path, no
//! permissions. A tool may succeed or report a failure. It must not crash, hang, or claim success
//! for something that it cannot have done.

mod bench;
mod case;
mod check;
mod failures;

pub(crate) use bench::check_conformance;
pub(crate) use case::read_cases;
pub(crate) use check::CheckResult;
