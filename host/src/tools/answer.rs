//! From what a call reported to what the model is told, within a cap.

use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::events::View;
use crate::conversation::{Content, ResultStatus, ToolResult};
use crate::private::{self, NotPrivate};
use crate::sandbox::{Failure, Output, Piece, Shown};

/// Where whole outputs are kept when a model is shown a part of them.
#[derive(Clone)]
pub struct Outputs {
    /// It need not be there yet.
    pub folder: PathBuf,
    /// Takes the secrets out of what is written there.
    pub redact: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// How much of an output a model is shown, and what becomes of the whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeping<'a> {
    /// In bytes.
    pub(super) cap: usize,
    /// `None`: it is not kept.
    pub(super) outputs: Option<&'a Outputs>,
}

/// Turns a report into a result and what the user is shown in its place.
pub(super) fn to_result(report: Result<Output, Failure>, keeping: Keeping<'_>, name: &str) -> (ToolResult, Option<View>) {
    match report {
        Ok(output) => {
            let view = output.shown.map(View::from);
            let text = |piece: &Piece| if let Piece::Text(text) = piece { text.len() } else { 0 };
            let pieces =
                if output.content.iter().map(text).sum::<usize>() > keeping.cap { with_one_text(output.content) } else { output.content };
            let content: Vec<Content> = pieces.into_iter().map(|piece| content(piece, keeping, name)).collect();
            let blank = content.iter().all(|piece| matches!(piece, Content::Text(text) if text.trim().is_empty()));
            let content = if blank { vec![Content::Text("(the tool gave no output)".into())] } else { content };
            (ToolResult { status: ResultStatus::Ok, content }, view)
        }
        Err(failure) => {
            let text = capped(failure.to_string(), keeping, name);
            (ToolResult::error(text), None)
        }
    }
}

/// All text as one, where the first of it was: the cap is one for the output, however many pieces it comes in.
fn with_one_text(pieces: Vec<Piece>) -> Vec<Piece> {
    let (mut whole, mut place, mut rest) = (String::new(), None, Vec::new());
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                place.get_or_insert(rest.len());
                if !whole.is_empty() && !whole.ends_with('\n') {
                    whole.push('\n');
                }
                whole.push_str(&text);
            }
            picture @ Piece::Image { .. } => rest.push(picture),
        }
    }
    rest.insert(place.unwrap_or_default(), Piece::Text(whole));
    rest
}

fn content(piece: Piece, keeping: Keeping<'_>, name: &str) -> Content {
    match piece {
        Piece::Text(text) => Content::Text(capped(text, keeping, name)),
        Piece::Image { media_type, data } => Content::Image { media_type, base64: base64(&data) },
    }
}

/// Text within the cap: its head and its tail with a marker between them that says where the whole is.
fn capped(text: String, keeping: Keeping<'_>, name: &str) -> String {
    if text.len() <= keeping.cap {
        return text;
    }
    let kept = keeping.outputs.and_then(|outputs| outputs.keep(name, &text).ok());
    let whole = match &kept {
        Some(path) => format!("; the whole output is in {}", path.display()),
        None => String::new(),
    };
    let marker = |left_out: usize| format!("\n[… {left_out} of {} bytes left out{whole} …]\n", text.len());
    let room = keeping.cap.saturating_sub(marker(text.len()).len());
    let head = &text[..text.floor_char_boundary(room * 2 / 3)];
    let tail = &text[text.ceil_char_boundary(text.len() - (room - room * 2 / 3))..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}{}{tail}", marker(left_out))
}

impl Outputs {
    fn keep(&self, name: &str, text: &str) -> Result<PathBuf, NotPrivate> {
        private::folder(&self.folder)?;
        let mut file = tempfile::Builder::new().prefix(&format!("{name}-")).suffix(".txt").tempfile_in(&self.folder)?;
        file.write_all((self.redact)(text).as_bytes())?;
        file.keep().map(|(_, path)| path).map_err(|error| error.error.into())
    }
}

impl From<Shown> for View {
    fn from(shown: Shown) -> Self {
        match shown {
            Shown::Text(text) => Self::Text(text),
            Shown::Diff(text) => Self::Diff(text),
            Shown::Table { header, rows } => Self::Table { header, rows },
        }
    }
}

fn base64(data: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(folder: &tempfile::TempDir) -> Outputs {
        Outputs { folder: folder.path().join("outputs"), redact: Arc::new(|text: &str| text.replace("sk-secret", "[key redacted]")) }
    }

    #[test]
    fn r114_a_whole_output_is_kept_without_the_keys_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let outputs = outputs(&folder);
        let path = outputs.keep("bash", "the key: sk-secret\n").expect("it is kept");
        assert_eq!(std::fs::read_to_string(path).expect("it is there"), "the key: [key redacted]\n");
    }

    #[test]
    fn r095_long_output_keeps_head_and_tail_within_the_cap() {
        let folder = tempfile::tempdir().expect("a folder");
        let outputs = outputs(&folder);
        let keeping = Keeping { cap: 400, outputs: Some(&outputs) };
        let text = format!("HEAD{}TAIL", "ä".repeat(1000));
        let cut = capped(text.clone(), keeping, "bash");
        assert!(cut.len() <= 400, "{}", cut.len());
        assert!(cut.starts_with("HEADä") && cut.ends_with("äTAIL"));
        let path = cut.split(" is in ").nth(1).and_then(|rest| rest.split(" …]").next()).expect("the marker names a file");
        assert_eq!(std::fs::read_to_string(path).expect("it is there"), text);
    }

    #[test]
    fn r095_the_cap_is_one_for_all_pieces_of_an_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let outputs = outputs(&folder);
        let keeping = Keeping { cap: 400, outputs: Some(&outputs) };
        let picture = || Piece::Image { media_type: "image/png".into(), data: vec![1] };
        let piece = |n: usize| Piece::Text(format!("{n}:{}", "x".repeat(300)));
        let content = vec![picture(), piece(1), picture(), piece(2), piece(3)];
        let (result, _) = to_result(Ok(Output { content, shown: None, truncated: false }), keeping, "x");
        let text = result.text();
        assert!(text.len() <= 400 && text.starts_with("1:x") && text.ends_with('x'), "{text}");
        assert!(matches!(&result.content[..], [Content::Image { .. }, Content::Text(_), Content::Image { .. }]));
        let file = std::fs::read_dir(&outputs.folder).expect("readable").next().expect("it is kept").expect("readable").path();
        let whole = std::fs::read_to_string(file).expect("readable");
        assert!(["1:x", "\n2:x", "\n3:x"].iter().all(|piece| whole.contains(piece)), "{whole}");
    }

    #[test]
    fn r095_what_fits_is_not_touched() {
        assert_eq!(capped("0123456789".into(), Keeping { cap: 10, outputs: None }, "x"), "0123456789");
    }

    #[test]
    fn an_output_without_text_says_so() {
        let output = Output { content: vec![Piece::Text(" \n".into())], shown: None, truncated: false };
        let (result, _) = to_result(Ok(output), Keeping { cap: 100, outputs: None }, "x");
        assert_eq!(result.text(), "(the tool gave no output)");
    }
}
