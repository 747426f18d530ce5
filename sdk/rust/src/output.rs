//! Building the result of a call.

use serde::Serialize;

use crate::bindings::exports::cofferdam::plugin::tools::Body;
use crate::{Annotation, Content, Output, ToolError};

/// A view, which the user sees instead of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum View {
    /// Plain text.
    Text(String),
    /// A unified diff.
    Diff(String),
    /// A table; each row has as many cells as the header.
    Table {
        /// The titles of the columns.
        header: Vec<String>,
        /// The cells, by row.
        rows: Vec<Vec<String>>,
    },
}

impl Output {
    /// Returns one text, for the model and for the user.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![Content::text(text)])
    }

    /// Returns one JSON value, for the model and for the user.
    pub fn json(value: &impl Serialize) -> Result<Self, ToolError> {
        Ok(Self::content(vec![Content::json(value)?]))
    }

    /// Returns a structured result, which the model sees as JSON. The value has to match
    /// [`Tool::output_schema`](crate::Tool::output_schema).
    pub fn structured(value: &impl Serialize) -> Result<Self, ToolError> {
        Self::content(Vec::new()).with_structured(value)
    }

    /// Returns several content items, in the order in which the model sees them.
    pub fn content(content: Vec<Content>) -> Self {
        Self { content, structured: None, view: None, truncated: false, annotations: Vec::new() }
    }

    /// Adds the structured result of a tool with an
    /// [output schema](crate::Tool::output_schema).
    pub fn with_structured(mut self, value: &impl Serialize) -> Result<Self, ToolError> {
        self.structured = Some(to_json(value)?);
        Ok(self)
    }

    /// Sets the view, which the user sees instead of the content: a [`View`], or content with the
    /// media type `text/plain`, `text/x-diff` or `text/csv`.
    #[must_use]
    pub fn with_view(mut self, view: impl Into<Content>) -> Self {
        self.view = Some(view.into());
        self
    }

    /// Adds a named value, as JSON.
    pub fn with_annotation(
        mut self,
        name: impl Into<String>,
        value: &impl Serialize,
    ) -> Result<Self, ToolError> {
        self.annotations.push(Annotation { name: name.into(), value: to_json(value)? });
        Ok(self)
    }

    /// Marks the result as truncated. The content should explain how to get the rest.
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.truncated = true;
        self
    }

    /// Returns the text of all content items, one per line, for tests.
    pub fn to_text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
    }
}

impl Content {
    /// Returns plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::text_of("text/plain", text)
    }

    /// Returns text of a media type such as `text/html`.
    pub fn text_of(media_type: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(media_type.into(), Body::Text(text.into()))
    }

    /// Returns a JSON value.
    pub fn json(value: &impl Serialize) -> Result<Self, ToolError> {
        Ok(Self::text_of("application/json", to_json(value)?))
    }

    /// Returns bytes. The model sees images of the types `image/png`, `image/jpeg`, `image/gif` and
    /// `image/webp`; of any other bytes it sees the media type and the size.
    pub fn bytes(media_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::new(media_type.into(), Body::Bytes(data.into()))
    }

    fn new(media_type: String, body: Body) -> Self {
        Self { media_type, body, uri: None, annotations: Vec::new() }
    }

    /// Sets the URI of an embedded resource. The model sees the URI before the body.
    #[must_use]
    pub fn with_uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Returns the text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            Body::Text(text) => Some(text),
            Body::Bytes(_) => None,
        }
    }
}

impl View {
    /// Returns a table; each row has as many cells as the header.
    pub fn table<H: Into<String>>(
        header: impl IntoIterator<Item = H>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        Self::Table { header: header.into_iter().map(Into::into).collect(), rows }
    }
}

impl From<View> for Content {
    fn from(view: View) -> Self {
        match view {
            View::Text(text) => Self::text(text),
            View::Diff(diff) => Self::text_of("text/x-diff", diff),
            View::Table { header, rows } => Self::text_of("text/csv", to_csv(&header, &rows)),
        }
    }
}

fn to_json(value: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(value).map_err(|error| {
        ToolError::failed(format!("the result cannot be written as JSON: {error}"))
    })
}

/// Writes a table as CSV (RFC 4180).
fn to_csv(header: &[String], rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for row in std::iter::once(header).chain(rows.iter().map(Vec::as_slice)) {
        for (column, cell) in row.iter().enumerate() {
            if column > 0 {
                text.push(',');
            }
            // A line without characters is not a record.
            if cell.contains([',', '"', '\n', '\r']) || cell.is_empty() && row.len() == 1 {
                text.push_str(&format!("\"{}\"", cell.replace('"', "\"\"")));
            } else {
                text.push_str(cell);
            }
        }
        text.push_str("\r\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_csv() {
        let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        let rows = vec![row(&["a,b", "\"c\""]), row(&["", "d\ne"])];
        let content = Content::from(View::table(["x", "y"], rows));
        assert_eq!(content.media_type, "text/csv");
        assert_eq!(content.as_text(), Some("x,y\r\n\"a,b\",\"\"\"c\"\"\"\r\n,\"d\ne\"\r\n"));
        let single = Content::from(View::table(["x"], vec![row(&[""])]));
        assert_eq!(single.as_text(), Some("x\r\n\"\"\r\n"));
    }

    #[test]
    fn a_structured_result_is_json_text() {
        let output = Output::structured(&[1, 2]).expect("it is JSON");
        assert_eq!(output.structured.as_deref(), Some("[1,2]"));
        assert_eq!(output.content, []);
    }
}
