//! The scratchpad: entries in order, of which the oldest give way when there are too many.

use cofferdam_sdk::ToolError;
use serde::{Deserialize, Serialize};

/// Of an entry, in bytes.
const LONGEST: usize = 8 << 10;
/// Of all entries, in bytes: with what JSON adds it still fits into one value of the host's.
const MOST_BYTES: usize = 24 << 10;

/// What is on the scratchpad.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pad {
    /// How many of the oldest have given way.
    gone: usize,
    entries: Vec<(Kind, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Thought,
    Observation,
}

impl Pad {
    /// Adds an entry, and tells of it.
    pub(crate) fn add(&mut self, kind: Kind, text: &str) -> Result<String, ToolError> {
        if text.len() > LONGEST {
            return Err(ToolError::invalid_input(
                "/text",
                format!(
                    "it has {} bytes; an entry has at most {LONGEST}. Say it in fewer words",
                    text.len()
                ),
            ));
        }
        self.entries.push((kind, text.to_owned()));
        let before = self.gone;
        // JSON makes two bytes of a quote or a line break, and six of a rare control character.
        while self.entries.iter().map(|(_, text)| weight(text)).sum::<usize>() > 2 * MOST_BYTES {
            self.entries.remove(0);
            self.gone += 1;
        }
        let number = self.gone + self.entries.len();
        Ok(match self.gone - before {
            0 => format!("Noted as entry {number}."),
            _ => format!(
                "Noted as entry {number}. The scratchpad is full, and entries up to {} are gone.",
                self.gone
            ),
        })
    }

    /// All entries.
    pub(crate) fn show(&self) -> String {
        if self.entries.is_empty() {
            return "The scratchpad is empty.".to_owned();
        }
        let mut text = match self.gone {
            0 => String::new(),
            gone => format!("(entries up to {gone} are gone, since the scratchpad was full)\n"),
        };
        for (place, (kind, entry)) in self.entries.iter().enumerate() {
            let kind = match kind {
                Kind::Thought => "thought",
                Kind::Observation => "observation",
            };
            let lines: Vec<&str> = entry.lines().collect();
            text.push_str(&format!("{}. {kind}: {}\n", self.gone + place + 1, lines.join("\n   ")));
        }
        text
    }

    /// How many entries there are, in words.
    pub(crate) fn count(&self) -> String {
        match self.entries.len() {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        }
    }
}

/// An upper bound on what an entry takes in JSON.
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
    fn the_oldest_give_way_and_the_rest_keep_their_numbers() {
        let mut pad = Pad::default();
        let long = "\u{1}\"\n".repeat(LONGEST / 3);
        for _ in 0..20 {
            assert!(pad.add(Kind::Thought, &long).is_ok());
        }
        let said = pad.add(Kind::Observation, "the last").unwrap_or_default();
        assert!(said.starts_with("Noted as entry 21."), "{said}");
        let shown = pad.show();
        assert!(
            shown.starts_with("(entries up to ") && shown.ends_with("21. observation: the last\n"),
            "{shown}"
        );
        let kept = serde_json::to_string(&pad).map(|json| json.len()).unwrap_or(usize::MAX);
        assert!(kept < 64 << 10, "{kept}");
    }

    #[test]
    fn an_entry_has_an_end() {
        assert!(matches!(
            Pad::default().add(Kind::Thought, &"x".repeat(LONGEST + 1)),
            Err(ToolError::InvalidInput(_))
        ));
    }
}
