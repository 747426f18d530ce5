//! What approved commands try to get out of their sandbox, and what developers do in it every day.
//!
//! Each probe of [`probes`] is a line for the shell and what must not have happened after it. It
//! runs three times: without a sandbox, where it has to succeed (a probe that cannot succeed shows
//! nothing), and in each level. What a level leaves open is part of the table, and of the matrix in
//! `SECURITY.md`, which is compared with what was measured:
//! `UPDATE_MATRIX=1 cargo test -p cofferdam-tests --test escape` writes it anew.
//!
//! On Linux a sandbox that is missing fails these tests; it does not skip them.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod allowed_work;
mod asked_hosts;
mod attributes;
mod chains;
mod closed_directories;
mod config;
mod environment;
mod full_disk;
mod large_trees;
mod lifetime;
mod listed_hosts;
mod matrix;
mod namespaces;
mod package_clients;
mod planted_links;
mod planted_named;
mod planted_repositories;
mod private_view;
mod probes;
mod read_only;
mod rebinding;
mod redirected_paths;
mod sequence;
mod settings;
mod system_calls;
mod users;

use std::sync::Arc;

use cofferdam::policy::{Capability, CommandLimits, CommandRules, SandboxLevel};
use cofferdam::sandbox::CommandSandbox;
use cofferdam_tests::guests::{TestGuest, TestHost, TestHostBuilder, commands};

/// The levels that close something.
const CONFINING_LEVELS: [SandboxLevel; 2] = [SandboxLevel::Full, SandboxLevel::Kernel];

/// Exactly this level.
fn rules_for_level(level: SandboxLevel) -> CommandRules {
    // Less than the fork bomb among the probes makes.
    let limits = CommandLimits { processes: 120, ..CommandLimits::default() };
    CommandRules { minimum: level, maximum: level, limits, ..CommandRules::default() }
}

/// A host with a tool that runs any line at this level.
fn new_host(level: SandboxLevel) -> TestHost {
    host_with_rules(rules_for_level(level))
}

fn host_with_rules(rules: CommandRules) -> TestHost {
    host_builder(rules).build()
}

fn host_builder(rules: CommandRules) -> TestHostBuilder {
    host_builder_with(commands(rules))
}

fn host_builder_with(commands: CommandSandbox) -> TestHostBuilder {
    let guest = TestGuest::from_file("command")
        .with_replacement("{{directory}}", "")
        .with_replacement("{{timeout}}", "60")
        .with_requested(&[Capability::RunCommands]);
    TestHostBuilder::default()
        .with_guest(&guest)
        .with_commands(Arc::new(commands))
        .with_output_limit(4 << 20)
}

/// Runs a line; what the tool says of it.
fn run_line(test_host: &TestHost, line: &str) -> String {
    // The guest takes its argument as it stands there, so that nothing in it may need to be escaped
    // for JSON.
    let encoded = encode_base64(&format!("set +f; unset IFS\n{line}"));
    let mark = line.rsplit_once(" # ").map(|(_, mark)| format!(" # {mark}")).unwrap_or_default();
    test_host
        .call(
            "command",
            &format!(r#"{{"line":"IFS=; set -f; eval $(echo {encoded} | base64 -d){mark}"}}"#),
        )
        .text
}

fn encode_base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            encoded.push(if place > chunk.len() { '=' } else { digit.into() });
        }
    }
    encoded
}

#[test]
fn this_machine_has_both_levels() {
    for level in CONFINING_LEVELS {
        let commands = commands(rules_for_level(level));
        let measured = commands.measured();
        assert_eq!(measured.level, level, "{:?}", measured.unavailable);
    }
}
