//! Tests of the order of calls: examples, and properties of random histories.

use proptest::prelude::*;

use super::*;
use crate::policy::WorkspacePath;

const LIMITS: QueueLimits =
    QueueLimits { running: 4, waiting_per_client: 8, waiting: 20, waiting_bytes: 1000 };

/// Parses a call such as `read a`, `write *`, `note -`: a tier or a stateful tool, and its files.
fn needs(text: &str) -> CallNeeds {
    let (kind, files) = text.split_once(' ').expect("a kind and files");
    let tier = match kind {
        "research" => Tier::Research,
        "write" => Tier::Write,
        _ => Tier::ReadOnly,
    };
    let touched_files = match files {
        "*" => TouchedFiles::Any,
        "-" => TouchedFiles::Nothing,
        path => TouchedFiles::Paths(vec![WorkspacePath::parse(path, None).expect("a path")]),
    };
    let stateful_tool = kind.starts_with("note").then(|| kind.to_owned());
    CallNeeds { tier, touched_files, stateful_tool }
}

/// Starts everything that may run.
fn start_all(queue: &mut CallQueue) -> Vec<CallNumber> {
    std::iter::from_fn(|| queue.start_next()).collect()
}

/// Queues calls of some clients, then ends one call after another. Returns the groups of calls that
/// started together.
fn order(limits: QueueLimits, clients: &[&[&str]]) -> String {
    let mut queue = CallQueue::new(limits);
    let mut names = std::collections::BTreeMap::new();
    for (client, calls) in clients.iter().enumerate() {
        let number = queue.add_client();
        for (n, call) in calls.iter().enumerate() {
            let call = queue.push(number, needs(call), 1).expect("it fits");
            names.insert(call, format!("{}{n}", char::from(b'a' + u8::try_from(client).unwrap())));
        }
    }
    let mut groups = Vec::new();
    let mut running = std::collections::VecDeque::new();
    loop {
        let started = start_all(&mut queue);
        if !started.is_empty() {
            groups.push(
                started.iter().map(|call| names[call].as_str()).collect::<Vec<_>>().join(" "),
            );
        }
        running.extend(started);
        let Some(call) = running.pop_front() else { return groups.join(" | ") };
        queue.remove(call);
    }
}

#[test]
fn reads_run_together_and_writes_alone() {
    let calls: &[&str] = &["read *", "read a", "write *", "write b", "read *"];
    assert_eq!(order(LIMITS, &[calls]), "a0 a1 | a2 | a3 | a4");
}

#[test]
fn a_call_with_other_files_does_not_wait_for_a_write() {
    let calls: &[&str] = &["write a", "read b", "read a/c", "research -"];
    assert_eq!(order(LIMITS, &[calls]), "a0 a1 a3 | a2");
}

#[test]
fn a_stateful_tool_runs_one_call_after_another_within_one_client() {
    assert_eq!(order(LIMITS, &[&["note -", "note -"], &["note -"]]), "a0 b0 | a1");
}

#[test]
fn clients_take_turns() {
    let one = QueueLimits { running: 1, ..LIMITS };
    let reads: &[&str] = &["read -", "read -", "read -"];
    assert_eq!(order(one, &[reads, &["read -"], &["read -"]]), "a0 | b0 | c0 | a1 | a2");
    let writes: &[&str] = &["write *", "write *"];
    assert_eq!(
        order(LIMITS, &[writes, &["read *", "write *"], writes]),
        "a0 | b0 | c0 | a1 | b1 | c1"
    );
}

#[test]
fn a_write_is_not_overtaken_for_ever() {
    let mut queue = CallQueue::new(LIMITS);
    let (reader, writer) = (queue.add_client(), queue.add_client());
    let read = queue.push(reader, needs("read *"), 1).expect("it fits");
    assert_eq!(start_all(&mut queue), [read]);
    let write = queue.push(writer, needs("write *"), 1).expect("it fits");
    assert_eq!(start_all(&mut queue), [], "it waits for the read");
    let late = queue.push(reader, needs("read *"), 1).expect("it fits");
    let other = queue.push(reader, needs("read -"), 1).expect("it fits");
    assert_eq!(start_all(&mut queue), [other], "only a call without files passes");
    queue.remove(read);
    assert_eq!(start_all(&mut queue), [write]);
    queue.remove(write);
    assert_eq!(start_all(&mut queue), [late]);
}

#[test]
fn a_full_queue_refuses_calls_and_says_why() {
    let mut queue = CallQueue::new(LIMITS);
    let clients: Vec<_> = (0..4).map(|_| queue.add_client()).collect();
    for _ in 0..8 {
        queue.push(clients[0], needs("read *"), 1).expect("it fits");
    }
    assert_eq!(queue.push(clients[0], needs("read *"), 1), Err(QueueOverflow::Client(8)));
    assert_eq!(queue.push(clients[1], needs("read *"), 993), Err(QueueOverflow::Bytes(1000)));
    for n in 8..20 {
        queue.push(clients[1 + n % 3], needs("read *"), 1).expect("it fits");
    }
    assert_eq!(queue.push(clients[3], needs("read *"), 1), Err(QueueOverflow::Server(20)));
    queue.remove_client(clients[0]);
    assert_eq!(queue.push(clients[0], needs("read *"), 1), Err(QueueOverflow::ClientGone));
    queue.push(clients[3], needs("read *"), 900).expect("there is room again");
}

#[derive(Clone, Debug)]
enum Step {
    Push {
        client: usize,
        call: &'static str,
    },
    /// Ends the nth of the running calls.
    End(usize),
    /// Gives up the nth of the waiting calls.
    GiveUp(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    let call = prop::sample::select(vec![
        "read *",
        "read a",
        "read a/b",
        "read b",
        "read -",
        "research -",
        "write *",
        "write a",
        "write b",
        "note -",
        "note a",
        "note2 *",
    ]);
    prop_oneof![
        4 => (0..3_usize, call).prop_map(|(client, call)| Step::Push { client, call }),
        3 => (0..8_usize).prop_map(Step::End),
        1 => (0..8_usize).prop_map(Step::GiveUp),
    ]
}

proptest! {
    #[test]
    fn every_history_keeps_the_rules(steps in prop::collection::vec(any_step(), 0..120)) {
        let limits = QueueLimits { running: 3, ..LIMITS };
        let mut queue = CallQueue::new(limits);
        let clients: Vec<_> = (0..3).map(|_| queue.add_client()).collect();
        // An independent record: client, needs, number.
        let mut waiting: Vec<PlacedCall> = Vec::new();
        let mut running: Vec<PlacedCall> = Vec::new();
        let total = steps.len();
        for step in steps.into_iter().chain((0..total * 2).map(|_| Step::End(0))) {
            match step {
                Step::Push { client, call } => {
                    let (client, needs) = (clients[client], needs(call));
                    if let Ok(number) = queue.push(client, needs.clone(), 1) {
                        waiting.push(PlacedCall { number, client, needs, bytes: 1 });
                    }
                }
                Step::End(n) if !running.is_empty() => {
                    let call = running.remove(n % running.len());
                    queue.remove(call.number);
                }
                Step::GiveUp(n) if !waiting.is_empty() => {
                    let call = waiting.remove(n % waiting.len());
                    queue.remove(call.number);
                }
                Step::End(_) | Step::GiveUp(_) => {}
            }
            while let Some(started) = queue.start_next() {
                let at = waiting.iter().position(|call| call.number == started);
                let call = waiting.remove(at.expect("only a waiting call starts"));
                prop_assert!(
                    !running.iter().any(|other| other.conflicts_with(&call)),
                    "{call:?} runs beside {running:?}"
                );
                let overtaken = waiting.iter().find(|other| {
                    other.client == call.client
                        && other.number < call.number
                        && other.conflicts_with(&call)
                });
                prop_assert!(overtaken.is_none(), "{call:?} overtakes {overtaken:?}");
                running.push(call);
                prop_assert!(running.len() <= 3);
            }
            prop_assert!(
                !running.is_empty() || waiting.is_empty(),
                "nothing runs, and these wait: {waiting:?}"
            );
        }
        prop_assert!(waiting.is_empty(), "every call runs: {waiting:?}");
    }

    /// With calls of all clients always waiting, no client waits longer than the others take.
    #[test]
    fn no_client_is_forgotten(kinds in prop::collection::vec(0..3_usize, 3)) {
        let calls = ["read *", "write *", "note -"];
        let mut queue = CallQueue::new(LIMITS);
        let clients: Vec<_> = (0..3).map(|_| queue.add_client()).collect();
        let mut served = [0_usize; 3];
        let mut owner = std::collections::BTreeMap::new();
        let mut running = std::collections::VecDeque::new();
        for _ in 0..300 {
            for (n, client) in clients.iter().enumerate() {
                while let Ok(number) = queue.push(*client, needs(calls[kinds[n]]), 1) {
                    owner.insert(number, n);
                    if owner.len() % 4 == 0 {
                        break;
                    }
                }
            }
            for started in start_all(&mut queue) {
                served[owner[&started]] += 1;
                running.push_back(started);
            }
            if let Some(call) = running.pop_front() {
                queue.remove(call);
            }
        }
        prop_assert!(served.iter().all(|count| *count >= 30), "{kinds:?}: {served:?}");
    }
}
