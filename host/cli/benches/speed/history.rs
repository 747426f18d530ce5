//! Benchmarks of reading a long session, as resuming it does.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use cofferdam::conversation::{Transcript, validate};
use cofferdam::session::{SessionScope, SessionStore, StoredSession};

use crate::measure::{Line, alone};

const TURNS: usize = 1000;

pub(crate) fn run() {
    let directory = tempfile::tempdir().expect("a folder");
    let entry = session(directory.path());
    let target = "well under 100 ms";
    let whole = || entry.load().expect("it is whole").transcript;
    assert_eq!(whole().exchanges()[0].turns().len(), TURNS + 1);
    alone(&Line { name: "a session of 1000 turns, read", target }, 5, 3, || drop(whole()));
    let transcript = whole();
    alone(&Line { name: "the same, checked as a whole", target }, 5, 20, || {
        validate(&transcript).expect("it is valid")
    });
    let exported = serde_json::to_string(&transcript).expect("it is data");
    alone(&Line { name: "the same, mended from an export", target }, 5, 3, || {
        drop(serde_json::from_str::<Transcript>(&exported).expect("it is mended"));
    });
}

/// Writes a session of [`TURNS`] turns with a tool result of about 2 KB each.
fn session(directory: &Path) -> StoredSession {
    let store = SessionStore::new(directory.join("sessions"));
    let _ = store.create_session(directory, Box::new(str::to_owned)).expect("it is created");
    let entry = store.list(SessionScope::All).expect("it is listed").pop().expect("there is one");
    let mut file = OpenOptions::new().append(true).open(entry.journal_path()).expect("it is there");
    let usage = r#"{"input":1000,"output":50,"cached_input":null,"cache_write":null}"#;
    let result = "a line of some file that was read, of an ordinary length\\n".repeat(36);
    let mut text =
        String::from("{\"request\":{\"id\":\"0a1b2c3d\",\"prompt\":\"go\",\"at\":\"\"}}\n");
    for turn in 0..TURNS {
        let call = format!(
            concat!(
                r#"{{"call":{{"id":"c{turn}","name":"read_file","#,
                r#""arguments":"{{\"path\":\"file.txt\"}}"}}}}"#
            ),
            turn = turn
        );
        text += &format!(
            "{{\"response\":{{\"blocks\":[{{\"text\":\"I \
                look.\"}},{call}],\"stop\":\"calls\",\"usage\":{usage}}}}}\n"
        );
        text += "{\"started\":{\"call\":0}}\n";
        text += &format!(
            "{{\"finished\":{{\"call\":0,\"result\":{{\"status\":\"ok\",\
                \"content\":[{{\"text\":\"{result}\"}}]}}}}}}\n"
        );
        text += "{\"closed\":{\"rest\":[]}}\n";
    }
    text += &format!(
        "{{\"turn\":{{\"blocks\":[{{\"text\":\"Done.\"}}],\"stop\":\"end\",\"usage\":{usage}}}}}\n"
    );
    text += "{\"outcome\":{\"kind\":\"answered\",\"at\":\"\"}}\n";
    file.write_all(text.as_bytes()).expect("it is written");
    entry
}
