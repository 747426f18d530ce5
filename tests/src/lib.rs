//! What the tests share.

pub mod program;
pub mod terminal;
pub mod wire;
