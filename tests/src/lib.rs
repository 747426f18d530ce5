//! What the tests share.

pub mod fuzz;
pub mod guests;
pub mod memory_limit;
pub mod prerequisites;
pub mod program;
pub mod terminal;
pub mod wire;
