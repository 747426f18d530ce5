//! Building what a call answers.

use crate::{Content, Output, Table, View};

impl Output {
    /// One text, for the model and for the user.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![Content::Text(text.into())])
    }

    /// One JSON value, for the model and for the user.
    pub fn json(value: &impl serde::Serialize) -> Result<Self, crate::ToolError> {
        match serde_json::to_string(value) {
            Ok(text) => Ok(Self::content(vec![Content::Json(text)])),
            Err(error) => Err(crate::ToolError::failed(format!("the answer is not JSON: {error}"))),
        }
    }

    /// Several pieces, in the order in which the model sees them.
    pub fn content(content: Vec<Content>) -> Self {
        Self { content, view: None, truncated: false }
    }

    /// Shows the user something else than the model.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = Some(view);
        self
    }

    /// Marks that something was left out. The content says how to get at the rest.
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.truncated = true;
        self
    }
}

impl View {
    /// A table; each row has as many cells as the header.
    pub fn table<H: Into<String>>(
        header: impl IntoIterator<Item = H>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        Self::Table(Table { header: header.into_iter().map(Into::into).collect(), rows })
    }
}
