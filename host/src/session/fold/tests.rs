use super::super::scripted_run::{self, ScriptedModel, only_session, text_response};
use super::*;
use crate::conversation::{ResultStatus, validate};

async fn sample_journal() -> (Vec<u8>, Transcript) {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, entry, transcript) = scripted_run::session_with_every_event(folder.path()).await;
    (std::fs::read(entry.journal_path()).expect("readable"), transcript)
}

/// What is on record of a call that may or may not have run.
fn result_statuses(saved: &SavedSession) -> Vec<ResultStatus> {
    let turns = saved.transcript.exchanges().iter().flat_map(|exchange| exchange.turns());
    turns.flat_map(|turn| turn.calls().map(|answered| answered.result.status)).collect()
}

#[tokio::test]
async fn r103_what_is_read_is_what_was_live() {
    let (bytes, live) = sample_journal().await;
    let saved = SavedSession::from_bytes(&bytes).expect("it is whole");
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
async fn r111_cut_anywhere_it_loads_and_is_valid() {
    let (bytes, _) = sample_journal().await;
    let mut last = SavedSession::default();
    for cut in 0..=bytes.len() {
        let saved = SavedSession::from_bytes(&bytes[..cut])
            .unwrap_or_else(|problem| panic!("cut at {cut}: {problem:?}"));
        assert_eq!(validate(&saved.transcript), Ok(()), "cut at {cut}");
        assert!(
            saved.complete_bytes <= cut as u64 && saved.requests.len() >= last.requests.len(),
            "cut at {cut}"
        );
        // Nothing that was durable goes away with what is torn after it.
        if cut == 0 || bytes[cut - 1] != b'\n' {
            assert_eq!(saved.transcript, last.transcript, "cut at {cut}");
        }
        last = saved;
    }
}

#[tokio::test]
async fn r063_cut_anywhere_it_takes_a_new_prompt() {
    let (bytes, _) = sample_journal().await;
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    for cut in
        ends.flat_map(|end| [end.saturating_sub(1), end, (end + 3).min(bytes.len())]).chain([0, 1])
    {
        let folder = tempfile::tempdir().expect("a folder");
        let store = super::super::SessionStore::new(folder.path().join("sessions"));
        let workspace = std::path::Path::new(scripted_run::WORKSPACE);
        drop(store.create_session(workspace, Box::new(str::to_owned)).expect("created"));
        let entry = only_session(&store);
        std::fs::write(entry.journal_path(), &bytes[..cut]).expect("writable");
        let mut session = entry.resume(workspace, Box::new(str::to_owned)).expect("it loads");
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
async fn r063_cut_anywhere_it_takes_a_summary_first() {
    let (bytes, _) = sample_journal().await;
    let mut summaries = 0;
    for end in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = super::super::SessionStore::new(folder.path().join("sessions"));
        let workspace = std::path::Path::new(scripted_run::WORKSPACE);
        drop(store.create_session(workspace, Box::new(str::to_owned)).expect("created"));
        let entry = only_session(&store);
        std::fs::write(entry.journal_path(), &bytes[..end]).expect("writable");
        let before = entry.load().expect("it loads").transcript;
        let mut session = entry.resume(workspace, Box::new(str::to_owned)).expect("it loads");
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
    let head = "{\"cofferdam_session\":1,\"id\":\"0123456789ab\",\"created\":\"\",\"workspace\":\"/w\"}\n\
        {\"request\":{\"id\":\"1\",\"prompt\":\"go\",\"at\":\"\"}}\n";
    let call =
        |id: &str| format!("{{\"call\":{{\"id\":\"{id}\",\"name\":\"bash\",\"arguments\":\"\"}}}}");
    let usage = "{\"input\":null,\"output\":null,\"cached_input\":null,\"cache_write\":null}";
    let calls = [call("a"), call("b"), call("c")].join(",");
    let text = format!(
        "{head}{{\"response\":{{\"blocks\":[{calls}],\"stop\":\"calls\",\"usage\":{usage}}}}}\n{}",
        "{\"started\":{\"call\":0}}\n{\"started\":{\"call\":1}}\n{\"finished\":{\"call\":0,\"result\":{\"status\":\"ok\",\"content\":[]}}}\n"
    );
    let saved = SavedSession::from_bytes(text.as_bytes()).expect("it is whole");
    assert_eq!(
        result_statuses(&saved),
        [ResultStatus::Ok, ResultStatus::Interrupted, ResultStatus::NotRun]
    );
    assert_eq!(saved.requests[0].ended, None);
    assert_eq!((saved.requests[0].turns, saved.turn_count()), (1, 1));
}

#[tokio::test]
async fn r111_a_flipped_bit_is_reported_with_its_line_or_changes_no_rule() {
    let (bytes, _) = sample_journal().await;
    for at in 0..bytes.len() {
        for bit in [0, 1, 4, 5, 7] {
            let mut bent = bytes.clone();
            bent[at] ^= 1 << bit;
            let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            match SavedSession::from_bytes(&bent) {
                Ok(saved) => assert_eq!(validate(&saved.transcript), Ok(()), "byte {at}"),
                Err(UnreadableJournal::Io(kind)) => panic!("{kind}"),
                Err(UnreadableJournal::NewerVersion { .. }) => assert_eq!(line, 1),
                // A newline that went away joins two lines; one that came in makes two.
                Err(UnreadableJournal::Damaged { line: told, reason }) => {
                    // A record that became another one can show where the next does not follow from
                    // it.
                    assert!(told >= line, "byte {at} in line {line}: told {told}, {reason}");
                }
            }
        }
    }
}

#[tokio::test]
async fn r111_a_line_that_is_missing_or_comes_twice_is_reported_or_changes_no_rule() {
    let (bytes, _) = sample_journal().await;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..lines.len() {
        for times in [0, 2] {
            let bent: Vec<u8> = lines
                .iter()
                .enumerate()
                .flat_map(|(n, line)| line.repeat(if n == at { times } else { 1 }))
                .collect();
            if let Ok(saved) = SavedSession::from_bytes(&bent) {
                assert_eq!(validate(&saved.transcript), Ok(()), "line {}", at + 1);
            }
        }
    }
    let damaged = |n: usize| {
        SavedSession::from_bytes(&[lines[0], lines[1], lines[n]].concat())
            .expect_err("it cannot follow")
    };
    let started =
        lines.iter().position(|line| line.starts_with(b"{\"started\"")).expect("there is one");
    assert_eq!(
        damaged(started),
        UnreadableJournal::Damaged { line: 3, reason: "no turn is open".into() }
    );
}

#[test]
fn r012_turns_come_in_one_order_and_nothing_else_is_read() {
    let head =
        "{\"cofferdam_session\":1,\"id\":\"0123456789ab\",\"created\":\"\",\"workspace\":\"/w\"}\n";
    let request = "{\"request\":{\"id\":\"1\",\"prompt\":\"go\",\"at\":\"\"}}\n";
    let usage = "{\"input\":null,\"output\":null,\"cached_input\":null,\"cache_write\":null}";
    let call = "{\"call\":{\"id\":\"a\",\"name\":\"read\",\"arguments\":\"\"}}";
    let response =
        format!("{{\"response\":{{\"blocks\":[{call}],\"stop\":\"calls\",\"usage\":{usage}}}}}\n");
    let turn = "{\"turn\":{\"blocks\":[{\"text\":\"hi\"}]}}\n";
    let (started, finished, closed) = (
        "{\"started\":{\"call\":0}}\n",
        "{\"finished\":{\"call\":0,\"result\":{\"status\":\"ok\",\"content\":[]}}}\n",
        "{\"closed\":{\"rest\":[]}}\n",
    );
    let outcome = "{\"outcome\":{\"kind\":\"answered\",\"at\":\"\"}}\n";
    let summary = |exchange: usize, turn: usize| {
        format!(
            "{{\"compacted\":{{\"text\":\"s\",\"until\":{{\"exchange\":{exchange},\"turn\":{turn}}},\"turns\":1,\"tokens\":9,\"at\":\"\"}}}}\n"
        )
    };
    let read = |records: &[&str]| {
        SavedSession::from_bytes([&[head], records].concat().concat().as_bytes()).map(|_| ())
    };
    let whole = [
        request,
        &response,
        started,
        finished,
        closed,
        &summary(0, 1),
        turn,
        outcome,
        &summary(1, 0),
    ];
    assert_eq!(read(&whole), Ok(()));
    let bad: [&[&str]; 11] = [
        &[turn],
        &[&response],
        &[request, started],
        &[request, closed],
        &[request, &response, turn],
        &[request, &response, &response],
        &[request, &response, outcome],
        &[request, &response, started, started],
        &[request, &response, &summary(0, 1)],
        &[request, turn, outcome, turn],
        &[request, turn, &summary(0, 1), &summary(0, 1)],
    ];
    for records in bad {
        assert!(matches!(read(records), Err(UnreadableJournal::Damaged { .. })), "{records:?}");
    }
}

#[test]
fn r051_a_result_without_its_call_is_moved_to_it_or_dropped() {
    let head =
        "{\"cofferdam_session\":1,\"id\":\"0123456789ab\",\"created\":\"\",\"workspace\":\"/w\"}\n";
    let request = "{\"request\":{\"id\":\"1\",\"prompt\":\"go\",\"at\":\"\"}}\n";
    let call =
        |id: &str| format!("{{\"call\":{{\"id\":\"{id}\",\"name\":\"read\",\"arguments\":\"\"}}}}");
    let usage = "{\"input\":null,\"output\":null,\"cached_input\":null,\"cache_write\":null}";
    let response = format!(
        "{{\"response\":{{\"blocks\":[{},{}],\"stop\":\"calls\",\"usage\":{usage}}}}}\n",
        call("a"),
        call("b")
    );
    let started = "{\"started\":{\"call\":0}}\n";
    let finished = |call: usize, text: &str| {
        format!(
            "{{\"finished\":{{\"call\":{call},\"result\":{{\"status\":\"ok\",\"content\":[{{\"text\":\"{text}\"}}]}}}}}}\n"
        )
    };
    let (first, second, late) = (finished(0, "first"), finished(1, "second"), finished(0, "late"));
    let (closed, none) = ("{\"closed\":{\"rest\":[]}}\n", finished(7, "of no call"));
    let turn = "{\"turn\":{\"blocks\":[{\"text\":\"hi\"}]}}\n";
    let unknown = "interrupted";
    let table: [(&[&str], &[&str]); 8] = [
        // Its call is in the turn before the newest request, and has no result: it is moved there.
        (&[request, &response, started, request, &first, turn], &["first", "not run"]),
        (&[request, &response, started, &first, request, &second], &["first", "second"]),
        // That one has its result already, and no second one counts.
        (&[request, &response, started, &first, request, &late, turn], &["first", "not run"]),
        // There is no such call, or it is too late for it: dropped.
        (&[request, &first], &[]),
        (&[request, turn, &first], &[]),
        (
            &[request, &response, started, &none, &first, &second, closed, turn],
            &["first", "second"],
        ),
        (
            &[request, &response, started, &first, &second, closed, &late, turn],
            &["first", "second"],
        ),
        (&[request, &response, started, request, turn, &first], &[unknown, "not run"]),
    ];
    for (records, expected) in table {
        let saved = SavedSession::from_bytes([&[head], records].concat().concat().as_bytes())
            .unwrap_or_else(|bad| panic!("{records:?}: {bad:?}"));
        assert_eq!(validate(&saved.transcript), Ok(()), "{records:?}");
        let turns = saved.transcript.exchanges().iter().flat_map(|exchange| exchange.turns());
        let texts: Vec<String> =
            turns.flat_map(|turn| turn.calls().map(|answered| answered.result.text())).collect();
        let fits = texts.len() == expected.len()
            && texts.iter().zip(expected).all(|(text, words)| text.contains(words));
        assert!(fits, "{records:?}: {texts:?}");
        assert_eq!(
            saved.turn_count(),
            records.iter().filter(|record| [turn, &response].contains(*record)).count()
        );
    }
}

#[test]
fn r110_a_newer_version_is_refused_whatever_else_it_says() {
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
async fn r062_reading_grows_with_the_length() {
    let (bytes, _) = sample_journal().await;
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
    // A summary extends the one before it, so the same one does not come twice.
    let again: Vec<u8> = bytes[end..]
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|l| !l.starts_with(b"{\"compacted"))
        .flatten()
        .copied()
        .collect();
    let long = [&bytes[..end], &again.repeat(300)].concat();
    let started = std::time::Instant::now();
    let saved = SavedSession::from_bytes(&long).expect("it is whole");
    assert_eq!(saved.requests.len(), 6 * 300);
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}
