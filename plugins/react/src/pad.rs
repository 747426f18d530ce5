//! The scratchpad: entries in order. The oldest are deleted when there are too many.

use cofferdam_sdk::ToolError;
use serde::{Deserialize, Serialize};

/// The longest entry, in bytes.
const MAX_ENTRY_LEN: usize = 8 << 10;
/// The bytes of all entries. As JSON they fit into one stored value.
const MAX_BYTES: usize = 24 << 10;

/// The entries of the scratchpad.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pad {
    /// The number of deleted entries.
    #[serde(rename = "gone")]
    deleted: usize,
    entries: Vec<(Kind, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Thought,
    Observation,
}

impl Pad {
    /// Adds an entry and returns the confirmation for the model.
    pub(crate) fn add(&mut self, kind: Kind, text: &str) -> Result<String, ToolError> {
        if text.len() > MAX_ENTRY_LEN {
            return Err(ToolError::invalid_input(
                "/text",
                format!(
                    "the text has {} bytes; an entry has at most {MAX_ENTRY_LEN}. Use fewer words",
                    text.len()
                ),
            ));
        }
        self.entries.push((kind, text.to_owned()));
        let before = self.deleted;
        // JSON makes two bytes of a quote or a line break, and six of a rare control character.
        while self.entries.iter().map(|(_, text)| weight(text)).sum::<usize>() > 2 * MAX_BYTES {
            self.entries.remove(0);
            self.deleted += 1;
        }
        let number = self.deleted + self.entries.len();
        Ok(match self.deleted - before {
            0 => format!("Noted as entry {number}."),
            _ => format!(
                "Noted as entry {number}. The scratchpad is full; entries up to {} were deleted.",
                self.deleted
            ),
        })
    }

    /// Returns all entries as text.
    pub(crate) fn show(&self) -> String {
        if self.entries.is_empty() {
            return "The scratchpad is empty.".to_owned();
        }
        let mut text = match self.deleted {
            0 => String::new(),
            deleted => {
                format!("(entries up to {deleted} were deleted, because the scratchpad was full)\n")
            }
        };
        for (place, (kind, entry)) in self.entries.iter().enumerate() {
            let kind = match kind {
                Kind::Thought => "thought",
                Kind::Observation => "observation",
            };
            let lines: Vec<&str> = entry.lines().collect();
            text.push_str(&format!(
                "{}. {kind}: {}\n",
                self.deleted + place + 1,
                lines.join("\n   ")
            ));
        }
        text
    }

    /// Returns the number of entries, in words.
    pub(crate) fn count(&self) -> String {
        match self.entries.len() {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        }
    }
}

/// Returns an upper bound of the size of an entry in JSON.
fn weight(text: &str) -> usize {
    let escaped = |b: u8| match b {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum::<usize>() + 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_deleted_and_the_rest_keep_their_numbers() {
        let mut pad = Pad::default();
        let long = "\u{1}\"\n".repeat(MAX_ENTRY_LEN / 3);
        for _ in 0..20 {
            assert!(pad.add(Kind::Thought, &long).is_ok());
        }
        let confirmation = pad.add(Kind::Observation, "the last").unwrap_or_default();
        assert!(confirmation.starts_with("Noted as entry 21."), "{confirmation}");
        let shown = pad.show();
        assert!(
            shown.starts_with("(entries up to ") && shown.ends_with("21. observation: the last\n"),
            "{shown}"
        );
        let kept = serde_json::to_string(&pad).map(|json| json.len()).unwrap_or(usize::MAX);
        assert!(kept < 64 << 10, "{kept}");
    }

    #[test]
    fn a_long_entry_is_refused() {
        assert!(matches!(
            Pad::default().add(Kind::Thought, &"x".repeat(MAX_ENTRY_LEN + 1)),
            Err(ToolError::InvalidInput(_))
        ));
    }
}
