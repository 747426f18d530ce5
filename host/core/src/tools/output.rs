//! Converts the output of a call into a result for the model, within a cap.

use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::events::ToolView;
use crate::conversation::{ResultContent, ResultStatus, ToolResult};
use crate::private_dir::{self, PrivateDirError};
use crate::sandbox::{CallFailure, CallOutput, OutputPiece, UserOutputView};

/// The directory for complete outputs when the model sees only a part of them.
#[derive(Clone)]
pub struct OutputFiles {
    /// The directory, which need not exist yet.
    pub directory: PathBuf,
    /// Removes the secrets from the text that is written there.
    pub redact: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

impl fmt::Debug for OutputFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputFiles").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// How much of an output the model sees, and where the complete output goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputRetention<'a> {
    /// The number of bytes that the model sees.
    pub(super) limit: usize,
    /// Where the complete output is saved; `None` discards it.
    pub(super) files: Option<&'a OutputFiles>,
}

/// Converts the outcome of a call into a result for the model and a view for the user.
pub(super) fn to_result(
    report: Result<CallOutput, CallFailure>,
    retention: OutputRetention<'_>,
    name: &str,
) -> (ToolResult, Option<ToolView>) {
    match report {
        Ok(output) => {
            let view = output.user_view.map(ToolView::from);
            let text = |piece: &OutputPiece| {
                if let OutputPiece::Text(text) = piece { text.len() } else { 0 }
            };
            let pieces = if output.content.iter().map(text).sum::<usize>() > retention.limit {
                merge_text(output.content)
            } else {
                output.content
            };
            let content: Vec<ResultContent> =
                pieces.into_iter().map(|piece| to_content(piece, retention, name)).collect();
            let blank = content
                .iter()
                .all(|piece| matches!(piece, ResultContent::Text(text) if text.trim().is_empty()));
            let content = if blank {
                vec![ResultContent::Text("(the tool returned no output)".into())]
            } else {
                content
            };
            (ToolResult { status: ResultStatus::Ok, content }, view)
        }
        Err(failure) => {
            let text = truncate(failure.to_string(), retention, name);
            (ToolResult::error(text), None)
        }
    }
}

/// Merges all text into one piece at the position of the first. The cap applies to the whole
/// output, however many pieces it has.
fn merge_text(pieces: Vec<OutputPiece>) -> Vec<OutputPiece> {
    let (mut whole, mut place, mut rest) = (String::new(), None, Vec::new());
    for piece in pieces {
        match piece {
            OutputPiece::Text(text) => {
                place.get_or_insert(rest.len());
                if !whole.is_empty() && !whole.ends_with('\n') {
                    whole.push('\n');
                }
                whole.push_str(&text);
            }
            picture @ OutputPiece::Image { .. } => rest.push(picture),
        }
    }
    rest.insert(place.unwrap_or_default(), OutputPiece::Text(whole));
    rest
}

fn to_content(piece: OutputPiece, retention: OutputRetention<'_>, name: &str) -> ResultContent {
    match piece {
        OutputPiece::Text(text) => ResultContent::Text(truncate(text, retention, name)),
        OutputPiece::Image { media_type, data } => {
            ResultContent::Image { media_type, base64: encode_base64(&data) }
        }
    }
}

/// Truncates text to the cap: head and tail, with a marker between them that names the file with
/// the complete text.
fn truncate(text: String, retention: OutputRetention<'_>, name: &str) -> String {
    if text.len() <= retention.limit {
        return text;
    }
    let kept = retention.files.and_then(|outputs| outputs.save(name, &text).ok());
    let whole = match &kept {
        Some(path) => format!("; the complete output is in {}", path.display()),
        None => String::new(),
    };
    let marker =
        |left_out: usize| format!("\n[… {left_out} of {} bytes omitted{whole} …]\n", text.len());
    let available = retention.limit.saturating_sub(marker(text.len()).len());
    let head = &text[..text.floor_char_boundary(available * 2 / 3)];
    let tail = &text[text.ceil_char_boundary(text.len() - (available - available * 2 / 3))..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}{}{tail}", marker(left_out))
}

impl OutputFiles {
    fn save(&self, name: &str, text: &str) -> Result<PathBuf, PrivateDirError> {
        private_dir::create(&self.directory)?;
        let mut file = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .suffix(".txt")
            .tempfile_in(&self.directory)?;
        file.write_all((self.redact)(text).as_bytes())?;
        file.keep().map(|(_, path)| path).map_err(|error| error.error.into())
    }
}

impl From<UserOutputView> for ToolView {
    fn from(shown: UserOutputView) -> Self {
        match shown {
            UserOutputView::Text(text) => Self::Text(text),
            UserOutputView::Diff(text) => Self::Diff(text),
            UserOutputView::Table { header, rows } => Self::Table { header, rows },
        }
    }
}

fn encode_base64(data: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output_files(directory: &tempfile::TempDir) -> OutputFiles {
        OutputFiles {
            directory: directory.path().join("outputs"),
            redact: Arc::new(|text: &str| text.replace("sk-secret", "[key redacted]")),
        }
    }

    #[test]
    fn r114_a_saved_output_has_no_keys() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let outputs = output_files(&directory);
        let path = outputs.save("bash", "the key: sk-secret\n").expect("saved");
        assert_eq!(std::fs::read_to_string(path).expect("present"), "the key: [key redacted]\n");
    }

    #[test]
    fn r095_long_output_keeps_head_and_tail_within_the_cap() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let outputs = output_files(&directory);
        let retention = OutputRetention { limit: 400, files: Some(&outputs) };
        let text = format!("HEAD{}TAIL", "ä".repeat(1000));
        let cut = truncate(text.clone(), retention, "bash");
        assert!(cut.len() <= 400, "{}", cut.len());
        assert!(cut.starts_with("HEADä") && cut.ends_with("äTAIL"));
        let path = cut
            .split(" is in ")
            .nth(1)
            .and_then(|rest| rest.split(" …]").next())
            .expect("the marker names a file");
        assert_eq!(std::fs::read_to_string(path).expect("present"), text);
    }

    #[test]
    fn r095_the_cap_applies_to_all_pieces_together() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let outputs = output_files(&directory);
        let retention = OutputRetention { limit: 400, files: Some(&outputs) };
        let picture = || OutputPiece::Image { media_type: "image/png".into(), data: vec![1] };
        let piece = |n: usize| OutputPiece::Text(format!("{n}:{}", "x".repeat(300)));
        let content = vec![picture(), piece(1), picture(), piece(2), piece(3)];
        let (result, _) =
            to_result(Ok(CallOutput { content, ..CallOutput::default() }), retention, "x");
        let text = result.text();
        assert!(text.len() <= 400 && text.starts_with("1:x") && text.ends_with('x'), "{text}");
        assert!(matches!(
            &result.content[..],
            [ResultContent::Image { .. }, ResultContent::Text(_), ResultContent::Image { .. }]
        ));
        let file = std::fs::read_dir(&outputs.directory)
            .expect("readable")
            .next()
            .expect("saved")
            .expect("readable")
            .path();
        let whole = std::fs::read_to_string(file).expect("readable");
        assert!(["1:x", "\n2:x", "\n3:x"].iter().all(|piece| whole.contains(piece)), "{whole}");
    }

    #[test]
    fn r095_output_within_the_cap_is_unchanged() {
        assert_eq!(
            truncate("0123456789".into(), OutputRetention { limit: 10, files: None }, "x"),
            "0123456789"
        );
    }

    #[test]
    fn an_output_without_text_says_so() {
        let output =
            CallOutput { content: vec![OutputPiece::Text(" \n".into())], ..CallOutput::default() };
        let (result, _) = to_result(Ok(output), OutputRetention { limit: 100, files: None }, "x");
        assert_eq!(result.text(), "(the tool returned no output)");
    }
}
