//! Reading a journal: all of it or nothing.

use serde::Serialize;

use super::record::{AnyHeader, Header, Record, VERSION};
use crate::agent::events::Remembered;
use crate::conversation::{OpenTurn, Part, Place, Slot, Summary, ToolResult, Transcript, Turn, Usage};

/// Why calls that a crash kept from starting never will.
const CRASHED: &str = "the program ended before its turn came";

/// What a journal holds.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// The first line; `None` if a crash came before it was written.
    pub header: Option<Header>,
    /// Valid, whatever the journal's last record is.
    pub transcript: Transcript,
    /// From the oldest to the newest.
    pub requests: Vec<Request>,
    /// What calls have left to later ones, in order.
    pub remembered: Vec<Remembered>,
    /// How many bytes of the file are whole lines.
    pub(super) whole: u64,
    /// What closes the turn that a crash left open. Until it is on record nothing but a request may follow.
    pub(super) missing: Option<Record>,
}

/// A request of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Its name.
    pub id: String,
    /// What the user said.
    pub prompt: String,
    /// Who answered, if that was written down.
    pub model: Option<String>,
    /// When.
    pub at: String,
    /// How many turns it took.
    pub turns: usize,
    /// `None` if it is under way, or was when the program was killed.
    pub ended: Option<Ended>,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// The outcome's word.
    pub outcome: String,
    /// What went wrong, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When.
    pub at: String,
}

/// Why a journal was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    Newer { version: u32 },
    Damaged { line: usize, problem: String },
}

impl Saved {
    /// Reads the bytes of a journal. What follows the last newline was torn by a crash and is passed over.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate();
        let Some((_, first)) = lines.next() else { return Ok(Self::default()) };
        let header = read_header(first)?;
        let mut fold = Fold::default();
        for (number, line) in lines {
            let damaged = |problem: String| Unreadable::Damaged { line: number + 1, problem };
            let record = serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
            fold.take(record).map_err(|problem| damaged(problem.to_owned()))?;
        }
        let remembered = std::mem::take(&mut fold.remembered);
        let on_record = fold.open.as_ref().map(|turn| turn.calls().map(|(_, slot)| matches!(slot, Slot::Done(_))).collect::<Vec<_>>());
        let (transcript, requests) = fold.finish();
        let missing = on_record.zip(transcript.last_turn()).map(|(on_record, turn)| Record::closed(&on_record, turn));
        Ok(Self { header: Some(header), transcript, requests, remembered, whole: whole as u64, missing })
    }

    /// How many turns the assistant took.
    pub fn turns(&self) -> usize {
        self.requests.iter().map(|request| request.turns).sum()
    }
}

fn read_header(line: &[u8]) -> Result<Header, Unreadable> {
    let damaged = |problem: String| Unreadable::Damaged { line: 1, problem };
    let unreadable = |error: serde_json::Error| damaged(format!("this is not the beginning of a session: {error}"));
    match serde_json::from_slice(line).map_err(unreadable)? {
        AnyHeader { cofferdam_session: 0 } => Err(damaged("there is no version 0".into())),
        AnyHeader { cofferdam_session: version } if version > VERSION => Err(Unreadable::Newer { version }),
        AnyHeader { .. } => serde_json::from_slice(line).map_err(unreadable),
    }
}

/// What has happened so far.
#[derive(Default)]
struct Fold {
    parts: Vec<Part>,
    summary: Option<Summary>,
    requests: Vec<Request>,
    open: Option<OpenTurn>,
    remembered: Vec<Remembered>,
}

type Taken = Result<(), &'static str>;

impl Fold {
    fn take(&mut self, record: Record) -> Taken {
        match record {
            Record::Request { id, prompt, model, at } => {
                self.close();
                self.requests.push(Request { id, prompt: prompt.clone(), model, at, turns: 0, ended: None });
                self.parts.push(Part { prompt, ..Part::default() });
            }
            Record::Response(response) => {
                self.under_way()?;
                self.open = Some(OpenTurn::new(response).map_err(|_| "a response without calls opens no turn")?);
            }
            Record::Started { call } => match self.call(call)? {
                (turn, Slot::Waiting) => turn.start(call),
                (_, Slot::Started | Slot::Done(_)) => return Err("a call starts a second time"),
            },
            Record::Finished { call, result, remembered } => {
                self.answer(call, result)?;
                self.remembered.extend(remembered);
            }
            Record::Closed { .. } if self.open.is_none() => return Err("no turn is open"),
            Record::Closed { rest } => {
                for (call, result) in rest {
                    self.answer(call, result)?;
                }
                self.close();
            }
            Record::Turn(turn) => {
                self.under_way()?;
                self.add(turn);
            }
            Record::Spent(usage) => {
                let part = self.parts.last_mut().ok_or("nothing was asked before it")?;
                part.overhead.push(usage);
            }
            Record::Compacted { .. } if self.open.is_some() => return Err("the turn before it is still open"),
            Record::Compacted { summary, usage, .. } => self.compact(summary, usage)?,
            Record::Outcome { kind, message, at } => {
                self.under_way()?;
                if let Some(request) = self.requests.last_mut() {
                    request.ended = Some(Ended { outcome: kind, message, at });
                }
            }
        }
        Ok(())
    }

    /// What a crash left open is closed as anything else is.
    fn finish(mut self) -> (Transcript, Vec<Request>) {
        self.close();
        let mut transcript = Transcript::assemble(self.parts);
        // Its place was there when it was read, and what it stands for is whole without it.
        self.summary.map(|summary| transcript.summarise(summary));
        (transcript, self.requests)
    }

    /// Whether something new can happen in the newest request.
    fn under_way(&self) -> Taken {
        match (self.requests.last(), &self.open) {
            (None, _) => Err("nothing was asked before it"),
            (Some(Request { ended: Some(_), .. }), _) => Err("the request is over"),
            (Some(Request { ended: None, .. }), Some(_)) => Err("the turn before it is still open"),
            (Some(Request { ended: None, .. }), None) => Ok(()),
        }
    }

    fn call(&mut self, index: usize) -> Result<(&mut OpenTurn, Slot), &'static str> {
        let turn = self.open.as_mut().ok_or("no turn is open")?;
        let slot = turn.progress(index).ok_or("the open turn has no such call")?.clone();
        Ok((turn, slot))
    }

    fn answer(&mut self, index: usize, result: ToolResult) -> Taken {
        match self.call(index)? {
            (turn, Slot::Waiting | Slot::Started) => turn.answer(index, result),
            (_, Slot::Done(_)) => return Err("a call finishes a second time"),
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(turn) = self.open.take() {
            self.add(turn.close(CRASHED));
        }
    }

    fn add(&mut self, turn: Turn) {
        if let (Some(part), Some(request)) = (self.parts.last_mut(), self.requests.last_mut()) {
            part.turns.push(turn);
            request.turns += 1;
        }
    }

    /// The newest summary counts; each extends the one before it.
    fn compact(&mut self, summary: Summary, usage: Usage) -> Taken {
        let Place { exchange, turn } = summary.until;
        let turns = self.parts.get(exchange).map_or(0, |part| part.turns.len());
        let is_there = exchange <= self.parts.len() && turn <= turns;
        let extends = self.summary.as_ref().is_none_or(|before| before.until < summary.until);
        let Some(part) = self.parts.last_mut().filter(|_| is_there && extends) else {
            return Err("the summary stands for what is not there");
        };
        part.overhead.push(usage);
        self.summary = Some(summary);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{self, Script, only, said};
    use super::*;
    use crate::conversation::{ResultStatus, validate};

    async fn journal() -> (Vec<u8>, Transcript) {
        let folder = tempfile::tempdir().expect("a folder");
        let (_, entry, transcript) = test_run::eventful(folder.path()).await;
        (std::fs::read(entry.path()).expect("readable"), transcript)
    }

    /// What is on record of a call that may or may not have run.
    fn statuses(saved: &Saved) -> Vec<ResultStatus> {
        let turns = saved.transcript.exchanges().iter().flat_map(|exchange| exchange.turns());
        turns.flat_map(|turn| turn.calls().map(|answered| answered.result.status)).collect()
    }

    #[tokio::test]
    async fn r103_what_is_read_is_what_was_live() {
        let (bytes, live) = journal().await;
        let saved = Saved::read(&bytes).expect("it is whole");
        assert_eq!(saved.transcript, live);
        let ended: Vec<&str> = saved.requests.iter().filter_map(|request| request.ended.as_ref()).map(|e| e.outcome.as_str()).collect();
        assert_eq!(ended, ["answered", "aborted", "provider-error", "provider-error", "limit", "empty"]);
        let live_turns: usize = live.exchanges().iter().map(|exchange| exchange.turns().len()).sum();
        assert_eq!(saved.turns(), live_turns);
    }

    #[tokio::test]
    async fn r111_cut_anywhere_it_loads_and_is_valid() {
        let (bytes, _) = journal().await;
        let mut last = Saved::default();
        for cut in 0..=bytes.len() {
            let saved = Saved::read(&bytes[..cut]).unwrap_or_else(|problem| panic!("cut at {cut}: {problem:?}"));
            assert_eq!(validate(&saved.transcript), Ok(()), "cut at {cut}");
            assert!(saved.whole <= cut as u64 && saved.requests.len() >= last.requests.len(), "cut at {cut}");
            // Nothing that was durable goes away with what is torn after it.
            if cut == 0 || bytes[cut - 1] != b'\n' {
                assert_eq!(saved.transcript, last.transcript, "cut at {cut}");
            }
            last = saved;
        }
    }

    #[tokio::test]
    async fn r063_cut_anywhere_it_takes_a_new_prompt() {
        let (bytes, _) = journal().await;
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        for cut in ends.flat_map(|end| [end.saturating_sub(1), end, (end + 3).min(bytes.len())]).chain([0, 1]) {
            let folder = tempfile::tempdir().expect("a folder");
            let store = super::super::Store::new(folder.path().join("sessions"));
            let workspace = std::path::Path::new(test_run::WORKSPACE);
            drop(store.create(workspace, Box::new(str::to_owned)).expect("created"));
            let entry = only(&store);
            std::fs::write(entry.path(), &bytes[..cut]).expect("writable");
            let mut session = entry.resume(workspace, Box::new(str::to_owned)).expect("it loads");
            let before = session.transcript.exchanges().len();
            test_run::request(
                session.journal,
                &mut session.transcript,
                "Go on.",
                &Script::new([said("Gladly.")]),
                &test_run::Notices::default(),
            )
            .await;
            let saved = entry.look().unwrap_or_else(|problem| panic!("cut at {cut}: {problem}"));
            assert_eq!(saved.transcript, session.transcript, "cut at {cut}");
            assert_eq!(saved.transcript.exchanges().len(), before + 1, "cut at {cut}");
            assert_eq!(saved.header.map(|header| header.workspace), Some(test_run::WORKSPACE.into()));
        }
    }

    #[tokio::test]
    async fn r063_cut_anywhere_it_takes_a_summary_first() {
        let (bytes, _) = journal().await;
        let mut summaries = 0;
        for end in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1) {
            let folder = tempfile::tempdir().expect("a folder");
            let store = super::super::Store::new(folder.path().join("sessions"));
            let workspace = std::path::Path::new(test_run::WORKSPACE);
            drop(store.create(workspace, Box::new(str::to_owned)).expect("created"));
            let entry = only(&store);
            std::fs::write(entry.path(), &bytes[..end]).expect("writable");
            let before = entry.look().expect("it loads").transcript;
            let mut session = entry.resume(workspace, Box::new(str::to_owned)).expect("it loads");
            let done = test_run::compact(session.journal, &mut session.transcript, &Script::new([said("x")])).await;
            summaries += usize::from(matches!(done, crate::agent::Compacted::Done { .. }));
            let saved = entry.look().unwrap_or_else(|problem| panic!("cut at {end}: {problem}"));
            assert_eq!(saved.transcript, session.transcript, "cut at {end}");
            assert_eq!(saved.transcript.exchanges().len(), before.exchanges().len(), "cut at {end}");
        }
        assert!(summaries > 10, "{summaries}");
    }

    #[test]
    fn r050_a_crash_leaves_calls_not_run_or_interrupted() {
        let head = "{\"cofferdam_session\":1,\"id\":\"0123456789ab\",\"created\":\"\",\"workspace\":\"/w\"}\n\
            {\"request\":{\"id\":\"1\",\"prompt\":\"go\",\"at\":\"\"}}\n";
        let call = |id: &str| format!("{{\"call\":{{\"id\":\"{id}\",\"name\":\"bash\",\"arguments\":\"\"}}}}");
        let usage = "{\"input\":null,\"output\":null,\"cached_input\":null,\"cache_write\":null}";
        let calls = [call("a"), call("b"), call("c")].join(",");
        let text = format!(
            "{head}{{\"response\":{{\"blocks\":[{calls}],\"stop\":\"calls\",\"usage\":{usage}}}}}\n{}",
            "{\"started\":{\"call\":0}}\n{\"started\":{\"call\":1}}\n{\"finished\":{\"call\":0,\"result\":{\"status\":\"ok\",\"content\":[]}}}\n"
        );
        let saved = Saved::read(text.as_bytes()).expect("it is whole");
        assert_eq!(statuses(&saved), [ResultStatus::Ok, ResultStatus::Interrupted, ResultStatus::NotRun]);
        assert_eq!(saved.requests[0].ended, None);
        assert_eq!((saved.requests[0].turns, saved.turns()), (1, 1));
    }

    #[tokio::test]
    async fn r111_a_flipped_bit_is_reported_with_its_line_or_changes_no_rule() {
        let (bytes, _) = journal().await;
        for at in 0..bytes.len() {
            for bit in [0, 1, 4, 5, 7] {
                let mut bent = bytes.clone();
                bent[at] ^= 1 << bit;
                let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
                match Saved::read(&bent) {
                    Ok(saved) => assert_eq!(validate(&saved.transcript), Ok(()), "byte {at}"),
                    Err(Unreadable::Newer { .. }) => assert_eq!(line, 1),
                    // A newline that went away joins two lines; one that came in makes two.
                    Err(Unreadable::Damaged { line: told, problem }) => {
                        // A record that became another one can show where the next does not follow from it.
                        assert!(told >= line, "byte {at} in line {line}: told {told}, {problem}");
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn r111_a_line_that_is_missing_or_comes_twice_is_reported_or_changes_no_rule() {
        let (bytes, _) = journal().await;
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for at in 0..lines.len() {
            for times in [0, 2] {
                let bent: Vec<u8> = lines.iter().enumerate().flat_map(|(n, line)| line.repeat(if n == at { times } else { 1 })).collect();
                if let Ok(saved) = Saved::read(&bent) {
                    assert_eq!(validate(&saved.transcript), Ok(()), "line {}", at + 1);
                }
            }
        }
        let damaged = |n: usize| Saved::read(&[lines[0], lines[1], lines[n]].concat()).expect_err("it cannot follow");
        let started = lines.iter().position(|line| line.starts_with(b"{\"started\"")).expect("there is one");
        assert_eq!(damaged(started), Unreadable::Damaged { line: 3, problem: "no turn is open".into() });
    }

    #[test]
    fn r012_turns_come_in_one_order_and_nothing_else_is_read() {
        let head = "{\"cofferdam_session\":1,\"id\":\"0123456789ab\",\"created\":\"\",\"workspace\":\"/w\"}\n";
        let request = "{\"request\":{\"id\":\"1\",\"prompt\":\"go\",\"at\":\"\"}}\n";
        let usage = "{\"input\":null,\"output\":null,\"cached_input\":null,\"cache_write\":null}";
        let call = "{\"call\":{\"id\":\"a\",\"name\":\"read\",\"arguments\":\"\"}}";
        let response = format!("{{\"response\":{{\"blocks\":[{call}],\"stop\":\"calls\",\"usage\":{usage}}}}}\n");
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
        let read = |records: &[&str]| Saved::read([&[head], records].concat().concat().as_bytes()).map(|_| ());
        let whole = [request, &response, started, finished, closed, &summary(0, 1), turn, outcome, &summary(1, 0)];
        assert_eq!(read(&whole), Ok(()));
        let bad: [&[&str]; 12] = [
            &[turn],
            &[&response],
            &[request, started],
            &[request, finished],
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
            assert!(matches!(read(records), Err(Unreadable::Damaged { .. })), "{records:?}");
        }
    }

    #[test]
    fn r110_a_newer_version_is_refused_whatever_else_it_says() {
        let read = |text: &str| Saved::read(text.as_bytes()).map(|_| ());
        assert_eq!(read("{\"cofferdam_session\":2,\"name\":7}\n{\"unheard\":1}\n"), Err(Unreadable::Newer { version: 2 }));
        for text in ["{\"cofferdam_session\":0}\n", "{}\n", "hello\n", "\n", "{\"cofferdam_session\":1}\n"] {
            assert!(matches!(read(text), Err(Unreadable::Damaged { line: 1, .. })), "{text}");
        }
    }

    #[tokio::test]
    async fn r062_reading_grows_with_the_length() {
        let (bytes, _) = journal().await;
        let end = bytes.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
        // A summary extends the one before it, so the same one does not come twice.
        let again: Vec<u8> =
            bytes[end..].split_inclusive(|byte| *byte == b'\n').filter(|l| !l.starts_with(b"{\"compacted")).flatten().copied().collect();
        let long = [&bytes[..end], &again.repeat(300)].concat();
        let started = std::time::Instant::now();
        let saved = Saved::read(&long).expect("it is whole");
        assert_eq!(saved.requests.len(), 6 * 300);
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }
}
