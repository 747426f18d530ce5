//! The output of a tool, checked by the host.

use super::contract::{Annotation, check_annotations};
use super::limits::CallLimits;
use super::media_type;
use crate::image_type;

/// The output of a successful call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOutput {
    /// The content for the model, in order.
    pub content: Vec<OutputPiece>,
    /// The JSON text of the structured result, not checked against the tool's output schema.
    pub structured: Option<String>,
    /// The view for the user, if it differs from the content.
    pub user_view: Option<UserOutputView>,
    /// Whether the tool left something out.
    pub truncated: bool,
}

/// A piece of content for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPiece {
    /// Text, or JSON as text.
    Text(String),
    /// An image in a supported format.
    Image {
        /// One of the four media types of the WIT contract.
        media_type: String,
        /// The bytes of the image file.
        data: Vec<u8>,
    },
}

/// A view for the user that replaces the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserOutputView {
    /// Plain text for the user.
    Text(String),
    /// A unified diff.
    Diff(String),
    /// A table whose rows are as long as its header.
    Table {
        /// The names of the columns.
        header: Vec<String>,
        /// The cells, by row.
        rows: Vec<Vec<String>>,
    },
}

/// The output of a tool source, not checked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceOutput {
    /// The content for the model, in order.
    pub content: Vec<SourceContent>,
    /// The JSON text of the structured result.
    pub structured: Option<String>,
}

/// A piece of content of a tool source, not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceContent {
    /// Text for the model.
    Text(String),
    /// A file. The model sees images of supported types, and the type and size of others.
    File {
        /// The media type, as the source names it.
        media_type: String,
        /// The bytes of the file.
        data: Vec<u8>,
    },
}

/// The output of a guest, not checked yet.
#[derive(Debug)]
pub(super) struct ReturnedOutput {
    pub(super) content: Vec<ReturnedContent>,
    pub(super) structured: Option<String>,
    pub(super) view: Option<ReturnedContent>,
    pub(super) truncated: bool,
    pub(super) annotations: Vec<Annotation>,
}

/// A piece of content of a guest, not checked yet.
#[derive(Debug)]
pub(super) struct ReturnedContent {
    pub(super) media_type: String,
    pub(super) body: ContentBody,
    pub(super) uri: Option<String>,
    pub(super) annotations: Vec<Annotation>,
}

/// The data of a piece of content.
#[derive(Debug)]
pub(super) enum ContentBody {
    Text(String),
    Bytes(Vec<u8>),
}

/// The longest address of an embedded resource, in bytes.
const MAX_URI_LEN: usize = 8 << 10;

impl CallOutput {
    /// Returns the size of the content for the model, in bytes.
    pub fn size(&self) -> usize {
        self.content.iter().map(OutputPiece::len).sum()
    }

    /// Checks the output of a tool source, or returns what is wrong with it.
    pub(crate) fn from_source(output: SourceOutput, limits: &CallLimits) -> Result<Self, String> {
        let returned = |(media_type, body)| ReturnedContent {
            media_type,
            body,
            uri: None,
            annotations: Vec::new(),
        };
        let content = output.content.into_iter().map(|piece| match piece {
            SourceContent::Text(text) => {
                returned(("text/plain".to_owned(), ContentBody::Text(text)))
            }
            SourceContent::File { media_type, data } => {
                returned((media_type, ContentBody::Bytes(data)))
            }
        });
        let output = ReturnedOutput {
            content: content.collect(),
            structured: output.structured,
            view: None,
            truncated: false,
            annotations: Vec::new(),
        };
        Self::check(output, limits)
    }

    /// Checks the output of a guest, or returns what is wrong with it.
    pub(super) fn check(output: ReturnedOutput, limits: &CallLimits) -> Result<Self, String> {
        check_annotations(&output.annotations)
            .map_err(|problem| format!("the output of the tool {problem}"))?;
        let pieces = output.content.iter().chain(&output.view);
        let bytes = pieces
            .map(ReturnedContent::len)
            .chain(output.structured.as_ref().map(String::len))
            .fold(0, usize::saturating_add);
        if bytes > limits.output {
            return Err(format!(
                "the tool returned {bytes} bytes; the limit is {}. Request less in one call.",
                limits.output
            ));
        }
        let mut content = Vec::new();
        for piece in output.content {
            piece.push_checked(&mut content)?;
        }
        // Without content, the model sees the structured result.
        if let (true, Some(structured)) = (content.is_empty(), &output.structured) {
            content.push(OutputPiece::Text(structured.clone()));
        }
        let user_view = output.view.map(ReturnedContent::into_view).transpose()?.flatten();
        Ok(Self { content, structured: output.structured, user_view, truncated: output.truncated })
    }
}

impl OutputPiece {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image { data, .. } => data.len(),
        }
    }
}

impl ReturnedContent {
    fn len(&self) -> usize {
        let body = match &self.body {
            ContentBody::Text(text) => text.len(),
            ContentBody::Bytes(bytes) => bytes.len(),
        };
        let uri = self.uri.as_ref().map_or(0, String::len);
        body.saturating_add(uri).saturating_add(self.media_type.len())
    }

    /// Returns the media type in lower case, once everything besides the body is checked.
    fn check_header(&self) -> Result<String, String> {
        check_annotations(&self.annotations)
            .map_err(|problem| format!("a content item of the tool {problem}"))?;
        if let Some(uri) = &self.uri
            && (uri.is_empty() || uri.len() > MAX_URI_LEN || uri.chars().any(char::is_control))
        {
            return Err(format!(
                "the tool returned content with an invalid `uri`: it is 1 to {MAX_URI_LEN} bytes \
                    in one line"
            ));
        }
        media_type::normalize(&self.media_type).ok_or_else(|| {
            let start: String = self.media_type.chars().take(64).collect();
            format!("the tool returned content of the invalid media type {start:?}")
        })
    }

    /// Adds what the model sees of this piece. The address is in front of the body.
    fn push_checked(self, content: &mut Vec<OutputPiece>) -> Result<(), String> {
        let media_type = self.check_header()?;
        let with_uri = |text: String| match &self.uri {
            Some(uri) => OutputPiece::Text(format!("{uri}\n{text}")),
            None => OutputPiece::Text(text),
        };
        let piece = match self.body {
            ContentBody::Text(text) => {
                if media_type == "application/json"
                    && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text)
                {
                    return Err(format!("the tool returned invalid JSON: {error}"));
                }
                with_uri(text)
            }
            ContentBody::Bytes(data) if image_type::MEDIA_TYPES.contains(&&*media_type) => {
                content.extend(self.uri.map(OutputPiece::Text));
                check_image(&media_type, data)?
            }
            ContentBody::Bytes(data) => with_uri(format!("[{media_type}, {} bytes]", data.len())),
        };
        content.push(piece);
        Ok(())
    }

    /// Returns what the user sees of a view, or `None` if the host cannot present it.
    fn into_view(self) -> Result<Option<UserOutputView>, String> {
        let media_type = self.check_header()?;
        let ContentBody::Text(text) = self.body else { return Ok(None) };
        Ok(Some(match media_type.as_str() {
            "text/x-diff" => UserOutputView::Diff(text),
            "text/csv" => parse_table(&text)?,
            _ => UserOutputView::Text(text),
        }))
    }
}

/// Checks an image. Its media type is determined from its bytes, whichever supported type the tool
/// names.
fn check_image(media_type: &str, data: Vec<u8>) -> Result<OutputPiece, String> {
    match image_type::media_type(&data) {
        Some(real) => Ok(OutputPiece::Image { media_type: real.to_owned(), data }),
        None => Err(format!(
            "the tool returned an image of type {media_type:?}, but its {} bytes are not an image \
                of a supported type: {}",
            data.len(),
            image_type::MEDIA_TYPES.join(", ")
        )),
    }
}

/// Parses a table of RFC 4180. Short rows are refused rather than filled up: a few thousand empty
/// rows under a few thousand columns are small for the guest, but gigabytes when filled.
fn parse_table(text: &str) -> Result<UserOutputView, String> {
    let invalid = |problem: String| format!("the tool returned a table that {problem}");
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader
        .read_record(&mut record)
        .map_err(|error| invalid(format!("is not CSV: {error}")))?
    {
        rows.push(record.iter().map(str::to_owned).collect::<Vec<String>>());
        let columns = rows.first().map_or(0, Vec::len);
        if record.len() != columns {
            return Err(invalid(format!(
                "has a row of {} cells, but {columns} columns",
                record.len()
            )));
        }
    }
    if rows.is_empty() {
        return Err(invalid("has no columns".into()));
    }
    let header = rows.remove(0);
    Ok(UserOutputView::Table { header, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(media_type: &str, body: ContentBody) -> ReturnedContent {
        ReturnedContent {
            media_type: media_type.to_owned(),
            body,
            uri: None,
            annotations: Vec::new(),
        }
    }

    fn text(media_type: &str, text: &str) -> ReturnedContent {
        piece(media_type, ContentBody::Text(text.to_owned()))
    }

    fn bytes(media_type: &str, data: &[u8]) -> ReturnedContent {
        piece(media_type, ContentBody::Bytes(data.to_vec()))
    }

    fn returned(content: Vec<ReturnedContent>) -> ReturnedOutput {
        ReturnedOutput {
            content,
            structured: None,
            view: None,
            truncated: false,
            annotations: Vec::new(),
        }
    }

    fn check(output: ReturnedOutput) -> Result<CallOutput, String> {
        CallOutput::check(output, &CallLimits::default())
    }

    /// Returns what the model sees, as text.
    fn seen(content: ReturnedContent) -> Result<String, String> {
        let output = check(returned(vec![content]))?;
        let piece = |piece: &OutputPiece| match piece {
            OutputPiece::Text(text) => text.clone(),
            OutputPiece::Image { media_type, data } => {
                format!("<{media_type} of {} bytes>", data.len())
            }
        };
        Ok(output.content.iter().map(piece).collect::<Vec<_>>().join("|"))
    }

    fn view(content: ReturnedContent) -> Result<Option<UserOutputView>, String> {
        check(ReturnedOutput { view: Some(content), ..returned(Vec::new()) })
            .map(|output| output.user_view)
    }

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    #[test]
    fn the_media_type_decides_what_the_model_sees() {
        let table = [
            (text("text/plain", "a"), "a"),
            (text("application/json", "{\"a\":1}"), "{\"a\":1}"),
            (text("image/svg+xml", "<svg/>"), "<svg/>"),
            (text("text/html", "<p>"), "<p>"),
            (bytes("image/png", PNG), "<image/png of 12 bytes>"),
            (bytes("IMAGE/PNG", PNG), "<image/png of 12 bytes>"),
            (bytes("audio/wav", &[0; 3000]), "[audio/wav, 3000 bytes]"),
            (bytes("application/pdf", b"%PDF"), "[application/pdf, 4 bytes]"),
            (bytes("image/tiff", PNG), "[image/tiff, 12 bytes]"),
            (bytes("text/plain", b"\xff"), "[text/plain, 1 bytes]"),
        ];
        for (content, expected) in table {
            assert_eq!(seen(content), Ok(expected.to_owned()));
        }
        for invalid in ["", "text", "text/plain; charset=utf-8", "a/b/c", "text/pl\nain"] {
            let problem = seen(text(invalid, "a")).expect_err(invalid);
            assert!(problem.contains("invalid media type"), "{problem}");
        }
        let problem = seen(text("application/json", "{")).expect_err("no JSON");
        assert!(problem.contains("the tool returned invalid JSON"), "{problem}");
    }

    #[test]
    fn the_address_of_a_resource_is_in_front_of_its_body() {
        let at = |content, uri: &str| ReturnedContent { uri: Some(uri.to_owned()), ..content };
        let uri = "file:///a.txt";
        assert_eq!(seen(at(text("text/plain", "x"), uri)), Ok("file:///a.txt\nx".into()));
        assert_eq!(
            seen(at(bytes("image/png", PNG), uri)),
            Ok("file:///a.txt|<image/png of 12 bytes>".into())
        );
        assert_eq!(
            seen(at(bytes("audio/wav", b"abc"), uri)),
            Ok("file:///a.txt\n[audio/wav, 3 bytes]".into())
        );
        for invalid in ["", "a\nb", "a\u{1b}[2J", &"x".repeat(MAX_URI_LEN + 1)] {
            let problem = seen(at(text("text/plain", "x"), invalid)).expect_err("no address");
            assert!(problem.contains("invalid `uri`"), "{problem}");
        }
    }

    #[test]
    fn r056_an_image_gets_its_real_type_or_fails_the_call() {
        for named in ["image/png", "image/jpeg"] {
            assert_eq!(seen(bytes(named, PNG)), Ok("<image/png of 12 bytes>".into()));
        }
        for (named, data) in [("image/png", &b""[..]), ("image/webp", b"<svg/>")] {
            let problem = seen(bytes(named, data)).expect_err("it is none");
            assert!(
                problem.contains(named)
                    && problem.ends_with("image/png, image/jpeg, image/gif, image/webp"),
                "{problem}"
            );
        }
    }

    #[test]
    fn without_content_the_model_sees_the_structured_result() {
        let structured =
            || ReturnedOutput { structured: Some("{\"n\": 1}".into()), ..returned(Vec::new()) };
        let output = check(structured()).expect("it is fine");
        assert_eq!(output.content, [OutputPiece::Text("{\"n\": 1}".into())]);
        let content = vec![text("text/plain", "one")];
        let output = check(ReturnedOutput { content, ..structured() }).expect("it is fine");
        assert_eq!(output.content, [OutputPiece::Text("one".into())]);
        assert_eq!(output.structured.as_deref(), Some("{\"n\": 1}"));
    }

    #[test]
    fn the_media_type_of_a_view_decides_how_it_is_shown() {
        let plain = |text: &str| Ok(Some(UserOutputView::Text(text.into())));
        assert_eq!(view(text("text/plain", "a")), plain("a"));
        assert_eq!(view(text("text/html", "<p>")), plain("<p>"));
        assert_eq!(view(text("text/x-diff", "-a")), Ok(Some(UserOutputView::Diff("-a".into()))));
        assert_eq!(view(bytes("image/png", PNG)), Ok(None));
        assert!(view(text("nothing", "a")).is_err_and(|problem| problem.contains("media type")));
    }

    #[test]
    fn a_csv_view_becomes_a_table() {
        let csv = |csv: &str| view(text("text/csv", csv));
        let cells = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            csv("a,b\r\n\"1,\"\"x\"\"\",\"two\nlines\"\r\n,\r\n"),
            Ok(Some(UserOutputView::Table {
                header: cells(&["a", "b"]),
                rows: vec![cells(&["1,\"x\"", "two\nlines"]), cells(&["", ""])],
            }))
        );
        let wrong = [("", "has no columns"), ("a,b\n1\n", "row of 1 cells, but 2 columns")];
        for (table, expected) in wrong {
            assert!(csv(table).is_err_and(|problem| problem.contains(expected)), "{table:?}");
        }
    }

    #[test]
    fn everything_counts_towards_the_limit_and_annotations_have_their_own() {
        let limit = CallLimits::default().output;
        let big = || "x".repeat(limit / 2 + 1);
        let outputs = [
            returned(vec![text("text/plain", &big()), bytes("audio/wav", big().as_bytes())]),
            ReturnedOutput { structured: Some(big()), ..returned(vec![text("a/b", &big())]) },
            ReturnedOutput {
                view: Some(text("text/csv", &big())),
                ..returned(vec![text("a/b", &big())])
            },
        ];
        for output in outputs {
            assert!(check(output).is_err_and(|problem| problem.contains("; the limit is ")));
        }
        let annotation = |bytes: usize| Annotation { name: "x-a".into(), value: "1".repeat(bytes) };
        let annotated = |annotations: Vec<Annotation>| {
            let on_content =
                ReturnedContent { annotations: annotations.clone(), ..text("text/plain", "a") };
            let on_output = ReturnedOutput { annotations, ..returned(Vec::new()) };
            [check(returned(vec![on_content])), check(on_output)]
        };
        assert!(annotated(vec![annotation(1); 64]).iter().all(Result::is_ok));
        for too_much in [vec![annotation(1); 65], vec![annotation(16 << 10)]] {
            for result in annotated(too_much) {
                assert!(result.is_err_and(|problem| problem.contains("annotations")));
            }
        }
    }
}
