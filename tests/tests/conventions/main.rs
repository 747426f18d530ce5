//! The conventions: who may import whom, who may name what, and what comes from where. Each is a
//! table; a file that breaks one is named with its line.

#![expect(clippy::expect_used, reason = "a tree that cannot be read has no rules to keep")]

mod components;
mod modes;
mod modules;
mod names;
mod public_api;
mod registry_hosts;
mod rules;
mod sources;
