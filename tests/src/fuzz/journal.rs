//! Reading a session's journal.

use cofferdam::conversation::{Transcript, validate};
use cofferdam::session::fuzzing::read_journal;

/// The first two bytes say where a crash cuts the journal that the rest is.
///
/// - What is read is a valid conversation, and stays what it is when it is stored and read
///   again.
/// - A journal that can be read can be read wherever it is torn.
pub fn journal(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first_chunk::<2>() else { return };
    let Ok(saved) = read_journal(bytes) else { return };
    assert_eq!(validate(&saved.transcript), Ok(()));
    let stored = serde_json::to_string(&saved.transcript).expect("a conversation is data");
    let again: Transcript = serde_json::from_str(&stored).expect("what was stored is read");
    assert_eq!(again, saved.transcript);

    let end = usize::from(u16::from_le_bytes(*cut)) % (bytes.len() + 1);
    let torn = read_journal(&bytes[..end]).expect("a torn journal is readable");
    assert_eq!(validate(&torn.transcript), Ok(()));
    assert!(torn.requests.len() <= saved.requests.len());
}
