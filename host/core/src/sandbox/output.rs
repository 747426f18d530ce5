//! The output of a tool, checked by the host.

use super::bindings::exports::cofferdam::plugin::tools as wit;
use super::limits::CallLimits;
use crate::image_type;

/// The output of a successful call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutput {
    /// The content for the model, in order.
    pub content: Vec<OutputPiece>,
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

impl CallOutput {
    /// Returns the size of the content for the model, in bytes.
    pub fn size(&self) -> usize {
        self.content.iter().map(OutputPiece::len).sum()
    }

    /// Checks the output of a guest, or returns what is wrong with it.
    pub(super) fn from_wit(output: wit::Output, limits: &CallLimits) -> Result<Self, String> {
        let mut bytes = 0_usize;
        let mut content = Vec::with_capacity(output.content.len());
        for piece in output.content {
            content.push(match piece {
                wit::Content::Text(text) => OutputPiece::Text(text),
                wit::Content::Json(text) => {
                    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
                        Ok(_) => OutputPiece::Text(text),
                        Err(error) => {
                            return Err(format!("the tool returned invalid JSON: {error}"));
                        }
                    }
                }
                wit::Content::Image(image) => check_image(image)?,
            });
            bytes = bytes.saturating_add(content.last().map_or(0, OutputPiece::len));
        }
        let shown = output.view.map(check_view).transpose()?;
        bytes = bytes.saturating_add(shown.as_ref().map_or(0, UserOutputView::len));
        if bytes > limits.output {
            return Err(format!(
                "the tool returned {bytes} bytes; the limit is {}. Request less in one call.",
                limits.output
            ));
        }
        Ok(Self { content, user_view: shown, truncated: output.truncated })
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

/// Checks an image. Its media type is determined from its bytes, whichever supported type the tool
/// names.
fn check_image(image: wit::Image) -> Result<OutputPiece, String> {
    let wit::Image { media_type, data } = image;
    if !image_type::MEDIA_TYPES.contains(&media_type.as_str()) {
        return Err(format!(
            "the tool returned an image of the unsupported type {media_type:?}; supported: {}",
            image_type::MEDIA_TYPES.join(", ")
        ));
    }
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

/// Checks a view without changing it. Short rows are refused rather than filled up: a few thousand
/// empty rows under a few thousand columns are small for the guest, but gigabytes when filled.
fn check_view(view: wit::View) -> Result<UserOutputView, String> {
    match view {
        wit::View::Text(text) => Ok(UserOutputView::Text(text)),
        wit::View::Diff(text) => Ok(UserOutputView::Diff(text)),
        wit::View::Table(wit::Table { header, rows }) => {
            match rows.iter().find(|row| row.len() != header.len()) {
                Some(row) => Err(format!(
                    "the tool returned a table with a row of {} cells and {} columns",
                    row.len(),
                    header.len()
                )),
                None if header.is_empty() => {
                    Err("the tool returned a table without columns".into())
                }
                None => Ok(UserOutputView::Table { header, rows }),
            }
        }
    }
}

impl UserOutputView {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Diff(text) => text.len(),
            Self::Table { header, rows } => {
                rows.iter().flatten().chain(header).map(String::len).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(media_type: &str, data: &[u8]) -> Result<CallOutput, String> {
        let image = wit::Image { media_type: media_type.to_owned(), data: data.to_vec() };
        let output =
            wit::Output { content: vec![wit::Content::Image(image)], view: None, truncated: false };
        CallOutput::from_wit(output, &CallLimits::default())
    }

    #[test]
    fn r056_an_image_gets_its_real_type_or_fails_the_call() {
        let png = b"\x89PNG\r\n\x1a\nrest";
        for named in ["image/png", "image/jpeg"] {
            let [OutputPiece::Image { media_type, data }] =
                &check(named, png).expect("a picture").content[..]
            else {
                panic!("one picture")
            };
            assert_eq!((media_type.as_str(), data.as_slice()), ("image/png", &png[..]));
        }
        for (named, data) in
            [("image/png", &b""[..]), ("image/webp", b"<svg/>"), ("image/svg+xml", png)]
        {
            let problem = check(named, data).expect_err("it is none");
            assert!(
                problem.contains(named)
                    && problem.ends_with("image/png, image/jpeg, image/gif, image/webp"),
                "{problem}"
            );
        }
    }
}
