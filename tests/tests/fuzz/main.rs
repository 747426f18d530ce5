//! The fuzz targets on their committed corpora, and on what a few thousand random changes make of
//! these: a fuzzer finds more, this finds it on every run.

#![expect(clippy::expect_used, reason = "a corpus that cannot be read fails the test")]

mod arguments;

use std::fs;
use std::path::Path;

use cofferdam_tests::fuzz::TARGETS;
use cofferdam_tests::memory_limit;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

/// Bytes that a test may take: no input of a fuzzer, which is small, can make any of this program
/// take more.
const MEMORY_LIMIT: u64 = 192 << 20;

fn read_corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let corpus: Vec<Vec<u8>> =
        entries.map(|entry| fs::read(entry.expect("an entry").path()).expect("readable")).collect();
    assert!(!corpus.is_empty(), "{} is empty", folder.display());
    corpus
}

/// A change of an input.
#[derive(Clone, Debug)]
enum InputChange {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, Index),
    Repeat(Index, Index),
}

impl InputChange {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let range = |from: &Index, to: &Index, len: usize| {
            let (from, to) = (from.index(len + 1), to.index(len + 1));
            from.min(to)..from.max(to)
        };
        match self {
            Self::Set(..) if bytes.is_empty() => {}
            Self::Set(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Insert(at, new) => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, new.iter().copied());
            }
            Self::Remove(from, to) => drop(bytes.drain(range(from, to, bytes.len()))),
            Self::Repeat(from, to) => bytes.extend_from_within(range(from, to, bytes.len())),
        }
    }
}

fn change_strategy() -> impl Strategy<Value = InputChange> {
    let telling = prop::sample::select(b"\0\n\r \"'/.:*[]{}=,\\\x1e\xff\xc3".to_vec());
    prop_oneof![
        (any::<Index>(), prop_oneof![telling, any::<u8>()])
            .prop_map(|(at, byte)| InputChange::Set(at, byte)),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..6))
            .prop_map(|(at, new)| InputChange::Insert(at, new)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| InputChange::Remove(from, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| InputChange::Repeat(from, to)),
    ]
}

#[test]
fn every_corpus_holds_and_is_small() {
    if !memory_limit::run_with_limit(MEMORY_LIMIT, "every_corpus_holds_and_is_small") {
        return;
    }
    for (name, target) in TARGETS {
        let corpus = read_corpus(name);
        assert!(corpus.len() >= 5, "the corpus of {name} is missing");
        assert!(
            corpus.iter().map(Vec::len).sum::<usize>() < 256 << 10,
            "the corpus of {name} is large"
        );
        corpus.iter().for_each(|input| target(input));
    }
}

#[test]
fn what_random_changes_make_of_a_corpus_holds() {
    if !memory_limit::run_with_limit(MEMORY_LIMIT, "what_random_changes_make_of_a_corpus_holds") {
        return;
    }
    for (name, target) in TARGETS {
        let corpus = read_corpus(name);
        let mut runner =
            TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
        let input = (any::<Index>(), prop::collection::vec(change_strategy(), 1..4)).prop_map(
            move |(which, changes)| {
                let mut bytes = which.get(&corpus).clone();
                changes.iter().for_each(|change| change.apply(&mut bytes));
                bytes
            },
        );
        let ran = runner.run(&input, |bytes| {
            target(&bytes);
            Ok(())
        });
        ran.unwrap_or_else(|failed| panic!("{name}: {failed}"));
    }
}
