//! What approved commands try to get out of their sandbox, and what developers do in it every day.
//!
//! Each probe of [`probes`] is a line for the shell and what must not have happened after it. It runs three times: without a
//! sandbox, where it has to succeed (a probe that cannot succeed shows nothing), and in each level. What a level leaves
//! open is part of the table, and of the matrix in `SECURITY.md`, which is compared with what was measured:
//! `UPDATE_MATRIX=1 cargo test -p cofferdam-tests --test escape` writes it anew.
//!
//! On Linux a sandbox that is missing fails these tests; it does not skip them.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod attributes;
mod chains;
mod config;
mod crowds;
mod lifetime;
mod matrix;
mod planted;
mod planted_named;
mod probes;
mod scene;
mod sequence;
mod settings;
mod system_calls;
mod users;
mod works;

use std::sync::Arc;

use cofferdam::policy::{Capability, CommandLimits, CommandRules, SandboxLevel};
use cofferdam_tests::guests::{Guest, House, Plan, commands};

/// The levels that close something.
const LEVELS: [SandboxLevel; 2] = [SandboxLevel::Full, SandboxLevel::Kernel];

/// Exactly this level.
fn rules(level: SandboxLevel) -> CommandRules {
    // Less than the fork bomb among the probes makes.
    let limits = CommandLimits { processes: 120, ..CommandLimits::default() };
    CommandRules { minimum: level, at_most: level, limits, ..CommandRules::default() }
}

/// A host with a tool that runs any line at this level.
fn house(level: SandboxLevel) -> House {
    house_with(rules(level))
}

fn house_with(rules: CommandRules) -> House {
    plan(rules).build()
}

fn plan(rules: CommandRules) -> Plan {
    let guest = Guest::named("command").with("{{directory}}", "").with("{{timeout}}", "60").asking(&[Capability::RunCommands]);
    Plan::default().guest(&guest).commands(Arc::new(commands(rules))).output_cap(4 << 20)
}

/// Runs a line; what the tool says of it.
fn run(house: &House, line: &str) -> String {
    // The guest takes its argument as it stands there, so that nothing in it may need to be escaped for JSON.
    let encoded = base64(&format!("set +f; unset IFS\n{line}"));
    let mark = line.rsplit_once(" # ").map(|(_, mark)| format!(" # {mark}")).unwrap_or_default();
    house.call("command", &format!(r#"{{"line":"IFS=; set -f; eval $(echo {encoded} | base64 -d){mark}"}}"#)).text
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            encoded.push(if place > chunk.len() { '=' } else { digit.into() });
        }
    }
    encoded
}

#[test]
fn this_machine_has_both_levels() {
    for level in LEVELS {
        let commands = commands(rules(level));
        let measured = commands.measured();
        assert_eq!(measured.level, level, "{:?}", measured.lacking);
    }
}
