//! What a tool answered, checked.

use super::bindings::exports::cofferdam::plugin::tools as wit;
use super::limits::Limits;

/// The answer of a call that went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// For the model, in order.
    pub content: Vec<Piece>,
    /// For the user, if it differs.
    pub shown: Option<Shown>,
    /// Whether the tool left something out.
    pub truncated: bool,
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text, JSON among it.
    Text(String),
    /// A picture.
    Image {
        /// One of the four types of the contract.
        media_type: String,
        /// The file.
        data: Vec<u8>,
    },
}

/// What the user sees in place of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Text.
    Text(String),
    /// A unified diff.
    Diff(String),
    /// A table whose rows are as long as its header.
    Table {
        /// Column names.
        header: Vec<String>,
        /// Cells.
        rows: Vec<Vec<String>>,
    },
}

const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

impl Output {
    /// How much there is for the model, in bytes.
    pub fn size(&self) -> usize {
        let size = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Image { data, .. } => data.len(),
        };
        self.content.iter().map(size).sum()
    }

    /// Takes an answer from a guest, or says what is wrong with it.
    pub(super) fn check(output: wit::Output, limits: &Limits) -> Result<Self, String> {
        let mut bytes = 0_usize;
        let mut content = Vec::with_capacity(output.content.len());
        for piece in output.content {
            content.push(match piece {
                wit::Content::Text(text) => Piece::Text(text),
                wit::Content::Json(text) => match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
                    Ok(_) => Piece::Text(text),
                    Err(error) => return Err(format!("the tool answered with JSON that does not parse: {error}")),
                },
                wit::Content::Image(image) if IMAGES.contains(&image.media_type.as_str()) => {
                    Piece::Image { media_type: image.media_type, data: image.data }
                }
                wit::Content::Image(image) => {
                    return Err(format!(
                        "the tool answered with an image of type {:?}, which is none of {}",
                        image.media_type,
                        IMAGES.join(", ")
                    ));
                }
            });
            bytes = bytes.saturating_add(match content.last() {
                Some(Piece::Text(text)) => text.len(),
                Some(Piece::Image { data, .. }) => data.len(),
                None => 0,
            });
        }
        let shown = output.view.map(shown).transpose()?;
        bytes = bytes.saturating_add(shown.as_ref().map_or(0, Shown::bytes));
        if bytes > limits.output {
            return Err(format!("the tool answered with {bytes} bytes; at most {} are taken. Ask for less at a time.", limits.output));
        }
        Ok(Self { content, shown, truncated: output.truncated })
    }
}

/// Takes a view as it is. Nothing is added to it: a few thousand rows without cells under a few thousand columns are small
/// for the guest that hands them over, and gigabytes once they are filled up.
fn shown(view: wit::View) -> Result<Shown, String> {
    match view {
        wit::View::Text(text) => Ok(Shown::Text(text)),
        wit::View::Diff(text) => Ok(Shown::Diff(text)),
        wit::View::Table(wit::Table { header, rows }) => match rows.iter().find(|row| row.len() != header.len()) {
            Some(row) => {
                Err(format!("the tool answered with a table that has a row of {} cells under {} columns", row.len(), header.len()))
            }
            None if header.is_empty() => Err("the tool answered with a table that has no columns".into()),
            None => Ok(Shown::Table { header, rows }),
        },
    }
}

impl Shown {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Diff(text) => text.len(),
            Self::Table { header, rows } => rows.iter().flatten().chain(header).map(String::len).sum(),
        }
    }
}
