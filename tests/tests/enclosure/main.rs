//! What hostile guests try, and what becomes of it. Each test loads a guest of `tests/guests` into
//! a host that is put together like the program, calls it by the road of a model's call, and then
//! calls a good tool in the same process.
//!
//! | module | area |
//! |---|---|
//! | `time` | guests that do not come back, at every point from the start to after the answer |
//! | `memory` | memory, tables, instances and stack, with both ways to allocate |
//! | `answers` | answers that are too large, malformed or made to be expensive; crashes |
//! | `floods` | progress, output, handles and timers without end |
//! | `world` | what a guest without grants sees: no files, variables, arguments, input or network |
//! | `loading` | what is no component, fits no host, or changes on disk; compiler and cache |
//! | `declarations` | names, descriptions and schemas; plugins that change their mind |
//! | `power` | imports that nobody asked for, and tools that borrow from their siblings |
//! | `files` | paths, links, FIFOs, and writing with a grant to read |
//! | `hidden` | secrets and files that other programs run, by every way that leads to them |
//! | `staged` | what is written aside: shown as it is, made real as a whole or not at all |
//! | `undo` | having back what was there |
//! | `walks` | hostile options, foreign roots, what a walk leaves out |
//! | `commands` | what is approved is what runs; refusals, limits, directories |
//! | `plans` | plans are accepted by the user, and by nobody else |
//! | `agents` | tasks that are handed over: who gets them, how many, what comes back |
//! | `notes` | what a tool keeps, and what it can not |
//! | `order` | parallel reads, single writes, cancelling, guests that hold on to every core |
//! | `text` | what reaches a terminal |
//! | `complete` | no guest is without a test |

#![expect(clippy::expect_used, reason = "the helpers of tests are tests too")]

mod capabilities;
mod commands;
mod coverage;
mod declarations;
mod environment;
mod files;
mod floods;
mod hidden;
mod loading;
mod memory;
mod overlay;
mod overlay_bounds;
mod overlay_paths;
mod plans;
mod requests;
mod results;
mod scheduling;
mod structured;
mod sub_agents;
mod terminal_text;
mod timeouts;
mod tool_state;
mod undo;
mod undo_records;
mod walks;

use cofferdam::sandbox::InstanceAllocation;

/// Both ways to allocate: limits have to hold with either.
const ALLOCATIONS: [InstanceAllocation; 2] =
    [InstanceAllocation::OnDemand, InstanceAllocation::Pooled];

/// Makes a FIFO. Not every system has a call for that which a program may make.
fn create_fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg("-m").arg("600").arg(path).status();
    assert!(made.expect("it starts").success());
}

/// A cache in a folder, with its key beside it.
fn open_cache(folder: &std::path::Path) -> cofferdam::sandbox::ArtifactCache {
    let key =
        cofferdam::sandbox::CacheKey::load_or_create(&folder.join("keys")).expect("there is a key");
    cofferdam::sandbox::ArtifactCache::open(&folder.join("cache"), key).expect("it opens")
}

/// Asserts that a text holds a part, and shows it if not.
#[track_caller]
fn assert_contains(text: &str, part: &str) {
    let shown: String = text.chars().take(600).collect();
    assert!(text.contains(part), "not said: {part:?}\nin: {shown}");
}
