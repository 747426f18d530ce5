use super::super::scripted_run::{self, ScriptedModel, only_session, text_response};
use super::*;
use crate::conversation::{ResultStatus, validate};

const HEADER: &str =
    "{\"cofferdam_session\":1,\"id\":\"0123456789ab\",\"created\":\"\",\"workspace\":\"/w\"}\n";
const REQUEST: &str = "{\"request\":{\"id\":\"1\",\"prompt\":\"go\",\"at\":\"\"}}\n";
const USAGE: &str = "{\"input\":null,\"output\":null,\"cached_input\":null,\"cache_write\":null}";

async fn sample_journal() -> (Vec<u8>, Transcript) {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (_, entry, transcript) = scripted_run::session_with_every_event(temp.path()).await;
    (std::fs::read(entry.journal_path()).expect("readable"), transcript)
}

/// Returns the recorded status of every call.
fn result_statuses(saved: &SavedSession) -> Vec<ResultStatus> {
    let turns = saved.transcript.exchanges().iter().flat_map(|exchange| exchange.turns());
    turns.flat_map(|turn| turn.calls().map(|answered| answered.result.status)).collect()
}

#[tokio::test]
async fn r103_the_loaded_transcript_equals_the_live_one() {
    let (bytes, live) = sample_journal().await;
    let saved = SavedSession::from_bytes(&bytes).expect("complete");
    assert_eq!(saved.transcript, live);
    let ended: Vec<&str> = saved
        .requests
        .iter()
        .filter_map(|request| request.ended.as_ref())
        .map(|e| e.outcome.as_str())
        .collect();
    assert_eq!(
        ended,
        ["answered", "aborted", "provider-error", "provider-error", "limit", "empty"]
    );
    let live_turns: usize = live.exchanges().iter().map(|exchange| exchange.turns().len()).sum();
    assert_eq!(saved.turn_count(), live_turns);
}

#[tokio::test]
async fn r111_a_log_truncated_anywhere_loads_and_is_valid() {
    let (bytes, _) = sample_journal().await;
    let mut previous = SavedSession::default();
    for cut in 0..=bytes.len() {
        let saved = SavedSession::from_bytes(&bytes[..cut])
            .unwrap_or_else(|problem| panic!("cut at {cut}: {problem:?}"));
        assert_eq!(validate(&saved.transcript), Ok(()), "cut at {cut}");
        assert!(
            saved.complete_bytes <= cut as u64 && saved.requests.len() >= previous.requests.len(),
            "cut at {cut}"
        );
        // A torn line does not affect the complete lines before it.
        if cut == 0 || bytes[cut - 1] != b'\n' {
            assert_eq!(saved.transcript, previous.transcript, "cut at {cut}");
        }
        previous = saved;
    }
}

#[tokio::test]
async fn r063_a_log_truncated_anywhere_accepts_a_new_prompt() {
    let (bytes, _) = sample_journal().await;
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    for cut in
        ends.flat_map(|end| [end.saturating_sub(1), end, (end + 3).min(bytes.len())]).chain([0, 1])
    {
        let temp = tempfile::tempdir().expect("temporary directory");
        let store = super::super::SessionStore::new(temp.path().join("sessions"));
        let workspace = std::path::Path::new(scripted_run::WORKSPACE);
        drop(store.create_session(workspace, Box::new(str::to_owned)).expect("created"));
        let entry = only_session(&store);
        std::fs::write(entry.journal_path(), &bytes[..cut]).expect("writable");
        let mut session = entry.resume(workspace, Box::new(str::to_owned)).expect("loads");
        let before = session.transcript.exchanges().len();
        scripted_run::run_request(
            session.journal,
            &mut session.transcript,
            "Go on.",
            &ScriptedModel::new([text_response("Gladly.")]),
            &scripted_run::NoticeLog::default(),
        )
        .await;
        let saved = entry.load().unwrap_or_else(|problem| panic!("cut at {cut}: {problem}"));
        assert_eq!(saved.transcript, session.transcript, "cut at {cut}");
        assert_eq!(saved.transcript.exchanges().len(), before + 1, "cut at {cut}");
        assert_eq!(
            saved.header.map(|header| header.workspace),
            Some(scripted_run::WORKSPACE.into())
        );
    }
}

#[tokio::test]
async fn r063_a_log_truncated_anywhere_accepts_a_summary() {
    let (bytes, _) = sample_journal().await;
    let mut summaries = 0;
    for end in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1) {
        let temp = tempfile::tempdir().expect("temporary directory");
        let store = super::super::SessionStore::new(temp.path().join("sessions"));
        let workspace = std::path::Path::new(scripted_run::WORKSPACE);
        drop(store.create_session(workspace, Box::new(str::to_owned)).expect("created"));
        let entry = only_session(&store);
        std::fs::write(entry.journal_path(), &bytes[..end]).expect("writable");
        let before = entry.load().expect("loads").transcript;
        let mut session = entry.resume(workspace, Box::new(str::to_owned)).expect("loads");
        let done = scripted_run::run_compaction(
            session.journal,
            &mut session.transcript,
            &ScriptedModel::new([text_response("x")]),
        )
        .await;
        summaries += usize::from(matches!(done, crate::agent::CompactionOutcome::Done { .. }));
        let saved = entry.load().unwrap_or_else(|problem| panic!("cut at {end}: {problem}"));
        assert_eq!(saved.transcript, session.transcript, "cut at {end}");
        assert_eq!(saved.transcript.exchanges().len(), before.exchanges().len(), "cut at {end}");
    }
    assert!(summaries > 10, "{summaries}");
}

#[test]
fn r050_a_crash_leaves_calls_not_run_or_interrupted() {
    let head = format!("{HEADER}{REQUEST}");
    let call =
        |id: &str| format!("{{\"call\":{{\"id\":\"{id}\",\"name\":\"bash\",\"arguments\":\"\"}}}}");
    let calls = [call("a"), call("b"), call("c")].join(",");
    let text = format!(
        "{head}{{\"response\":{{\"blocks\":[{calls}],\"stop\":\"calls\",\"usage\":{USAGE}}}}}\n{}",
        concat!(
            "{\"started\":{\"call\":0}}\n{\"started\":{\"call\":1}}\n",
            "{\"finished\":{\"call\":0,\"result\":{\"status\":\"ok\",\"content\":[]}}}\n"
        )
    );
    let saved = SavedSession::from_bytes(text.as_bytes()).expect("complete");
    assert_eq!(
        result_statuses(&saved),
        [ResultStatus::Ok, ResultStatus::Interrupted, ResultStatus::NotRun]
    );
    assert_eq!(saved.requests[0].ended, None);
    assert_eq!((saved.requests[0].turns, saved.turn_count()), (1, 1));
}

#[tokio::test]
async fn r111_a_flipped_bit_is_reported_with_its_line_or_breaks_no_rule() {
    let (bytes, _) = sample_journal().await;
    for at in 0..bytes.len() {
        for bit in [0, 1, 4, 5, 7] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            match SavedSession::from_bytes(&damaged) {
                Ok(saved) => assert_eq!(validate(&saved.transcript), Ok(()), "byte {at}"),
                Err(UnreadableJournal::Io(kind)) => panic!("{kind}"),
                Err(UnreadableJournal::NewerVersion { .. }) => assert_eq!(line, 1),
                // A lost newline joins two lines, and a new one splits a line.
                Err(UnreadableJournal::Damaged { line: reported, reason }) => {
                    // A damaged record may be valid, and only the next one does not follow from it.
                    assert!(reported >= line, "byte {at} in line {line}: {reported}, {reason}");
                }
            }
        }
    }
}

#[tokio::test]
async fn r111_a_missing_or_repeated_line_is_reported_or_breaks_no_rule() {
    let (bytes, _) = sample_journal().await;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..lines.len() {
        for times in [0, 2] {
            let damaged: Vec<u8> = lines
                .iter()
                .enumerate()
                .flat_map(|(n, line)| line.repeat(if n == at { times } else { 1 }))
                .collect();
            if let Ok(saved) = SavedSession::from_bytes(&damaged) {
                assert_eq!(validate(&saved.transcript), Ok(()), "line {}", at + 1);
            }
        }
    }
    let damaged = |n: usize| {
        SavedSession::from_bytes(&[lines[0], lines[1], lines[n]].concat())
            .expect_err("invalid order")
    };
    let started = lines.iter().position(|line| line.starts_with(b"{\"started\"")).expect("present");
    assert_eq!(
        damaged(started),
        UnreadableJournal::Damaged { line: 3, reason: "no turn is open".into() }
    );
}

#[test]
fn r012_records_in_an_invalid_order_are_rejected() {
    let call = "{\"call\":{\"id\":\"a\",\"name\":\"read\",\"arguments\":\"\"}}";
    let response =
        format!("{{\"response\":{{\"blocks\":[{call}],\"stop\":\"calls\",\"usage\":{USAGE}}}}}\n");
    let turn = "{\"turn\":{\"blocks\":[{\"text\":\"hi\"}]}}\n";
    let (started, finished, closed) = (
        "{\"started\":{\"call\":0}}\n",
        "{\"finished\":{\"call\":0,\"result\":{\"status\":\"ok\",\"content\":[]}}}\n",
        "{\"closed\":{\"rest\":[]}}\n",
    );
    let outcome = "{\"outcome\":{\"kind\":\"answered\",\"at\":\"\"}}\n";
    let summary = |exchange: usize, turn: usize| {
        format!(
            concat!(
                "{{\"compacted\":{{\"text\":\"s\",\"until\":{{\"exchange\":{},\"turn\":{}}},",
                "\"turns\":1,\"tokens\":9,\"at\":\"\"}}}}\n"
            ),
            exchange, turn
        )
    };
    let read = |records: &[&str]| {
        SavedSession::from_bytes([&[HEADER], records].concat().concat().as_bytes()).map(|_| ())
    };
    let valid = [
        REQUEST,
        &response,
        started,
        finished,
        closed,
        &summary(0, 1),
        turn,
        outcome,
        &summary(1, 0),
    ];
    assert_eq!(read(&valid), Ok(()));
    let invalid: [&[&str]; 11] = [
        &[turn],
        &[&response],
        &[REQUEST, started],
        &[REQUEST, closed],
        &[REQUEST, &response, turn],
        &[REQUEST, &response, &response],
        &[REQUEST, &response, outcome],
        &[REQUEST, &response, started, started],
        &[REQUEST, &response, &summary(0, 1)],
        &[REQUEST, turn, outcome, turn],
        &[REQUEST, turn, &summary(0, 1), &summary(0, 1)],
    ];
    for records in invalid {
        assert!(matches!(read(records), Err(UnreadableJournal::Damaged { .. })), "{records:?}");
    }
}

#[test]
fn r051_a_misplaced_result_is_moved_to_its_call_or_dropped() {
    let call =
        |id: &str| format!("{{\"call\":{{\"id\":\"{id}\",\"name\":\"read\",\"arguments\":\"\"}}}}");
    let response = format!(
        "{{\"response\":{{\"blocks\":[{},{}],\"stop\":\"calls\",\"usage\":{USAGE}}}}}\n",
        call("a"),
        call("b")
    );
    let started = "{\"started\":{\"call\":0}}\n";
    let finished = |call: usize, text: &str| {
        format!(
            concat!(
                "{{\"finished\":{{\"call\":{},\"result\":",
                "{{\"status\":\"ok\",\"content\":[{{\"text\":\"{}\"}}]}}}}}}\n"
            ),
            call, text
        )
    };
    let (first, second, late) = (finished(0, "first"), finished(1, "second"), finished(0, "late"));
    let (closed, none) = ("{\"closed\":{\"rest\":[]}}\n", finished(7, "of no call"));
    let turn = "{\"turn\":{\"blocks\":[{\"text\":\"hi\"}]}}\n";
    let unknown = "interrupted";
    let table: [(&[&str], &[&str]); 8] = [
        // The call is in the turn before the newest request and has no result: it gets this one.
        (&[REQUEST, &response, started, REQUEST, &first, turn], &["first", "not run"]),
        (&[REQUEST, &response, started, &first, REQUEST, &second], &["first", "second"]),
        // The call already has a result, so the second one is dropped.
        (&[REQUEST, &response, started, &first, REQUEST, &late, turn], &["first", "not run"]),
        // The call does not exist, or the result is too late: it is dropped.
        (&[REQUEST, &first], &[]),
        (&[REQUEST, turn, &first], &[]),
        (
            &[REQUEST, &response, started, &none, &first, &second, closed, turn],
            &["first", "second"],
        ),
        (
            &[REQUEST, &response, started, &first, &second, closed, &late, turn],
            &["first", "second"],
        ),
        (&[REQUEST, &response, started, REQUEST, turn, &first], &[unknown, "not run"]),
    ];
    for (records, expected) in table {
        let saved = SavedSession::from_bytes([&[HEADER], records].concat().concat().as_bytes())
            .unwrap_or_else(|error| panic!("{records:?}: {error:?}"));
        assert_eq!(validate(&saved.transcript), Ok(()), "{records:?}");
        let turns = saved.transcript.exchanges().iter().flat_map(|exchange| exchange.turns());
        let texts: Vec<String> =
            turns.flat_map(|turn| turn.calls().map(|answered| answered.result.text())).collect();
        let matches = texts.len() == expected.len()
            && texts.iter().zip(expected).all(|(text, words)| text.contains(words));
        assert!(matches, "{records:?}: {texts:?}");
        assert_eq!(
            saved.turn_count(),
            records.iter().filter(|record| [turn, &response].contains(*record)).count()
        );
    }
}

#[test]
fn r110_a_newer_version_is_refused_before_anything_else_is_read() {
    let read = |text: &str| SavedSession::from_bytes(text.as_bytes()).map(|_| ());
    assert_eq!(
        read("{\"cofferdam_session\":2,\"name\":7}\n{\"unheard\":1}\n"),
        Err(UnreadableJournal::NewerVersion { version: 2 })
    );
    for text in
        ["{\"cofferdam_session\":0}\n", "{}\n", "hello\n", "\n", "{\"cofferdam_session\":1}\n"]
    {
        assert!(matches!(read(text), Err(UnreadableJournal::Damaged { line: 1, .. })), "{text}");
    }
}

#[tokio::test]
async fn r062_reading_a_log_takes_linear_time() {
    let (bytes, _) = sample_journal().await;
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
    // Each summary must extend the one before it, so the same record cannot be repeated.
    let repeated: Vec<u8> = bytes[end..]
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|l| !l.starts_with(b"{\"compacted"))
        .flatten()
        .copied()
        .collect();
    let long = [&bytes[..end], &repeated.repeat(300)].concat();
    let started = std::time::Instant::now();
    let saved = SavedSession::from_bytes(&long).expect("complete");
    assert_eq!(saved.requests.len(), 6 * 300);
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}
