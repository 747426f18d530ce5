//! The result of a call, as the host gets it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam::sandbox::{SourceContent, SourceOutput};
use cofferdam::terminal_escape::{escape_line, escape_text};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The longest address of a resource that is shown, in characters.
const MAX_URI_LEN: usize = 500;

/// Converts a result. `has_schema` says whether the tool has an output schema, without which a
/// structured result is only text. The text of a server is escaped, so that no character hides.
///
/// # Errors
///
/// The server says that the call failed, or a part of the result is not valid.
pub(super) fn to_output(result: CallToolResult, has_schema: bool) -> Result<SourceOutput, String> {
    let is_error = result.is_error == Some(true);
    let mut content = Vec::with_capacity(result.content.len());
    for block in result.content {
        push_block(block, &mut content)?;
    }
    let structured = result.structured_content.map(|value| value.to_string());
    if is_error {
        let texts: Vec<&str> = content.iter().filter_map(text_of).collect();
        return Err(match texts.join("\n") {
            text if text.trim().is_empty() => "the tool failed without saying why".to_owned(),
            text => text,
        });
    }
    match structured {
        Some(structured) if !has_schema => {
            if content.is_empty() {
                content.push(SourceContent::Text(escape_text(&structured)));
            }
            Ok(SourceOutput { content, structured: None })
        }
        structured => Ok(SourceOutput { content, structured }),
    }
}

fn text_of(content: &SourceContent) -> Option<&str> {
    match content {
        SourceContent::Text(text) => Some(text),
        SourceContent::File { .. } => None,
    }
}

fn push_block(block: ContentBlock, content: &mut Vec<SourceContent>) -> Result<(), String> {
    match block {
        ContentBlock::Text(text) => content.push(SourceContent::Text(escape_text(&text.text))),
        ContentBlock::Image(image) => content.push(decode(image.mime_type, &image.data)?),
        ContentBlock::Audio(audio) => content.push(decode(audio.mime_type, &audio.data)?),
        ContentBlock::ResourceLink(link) => {
            let name = escape_line(&link.name, 200);
            let uri = escape_line(&link.uri, MAX_URI_LEN);
            content.push(SourceContent::Text(format!("[resource {name}: {uri}]")));
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                let uri = escape_line(&uri, MAX_URI_LEN);
                content.push(SourceContent::Text(format!("{uri}\n{}", escape_text(&text))));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                content.push(SourceContent::Text(escape_line(&uri, MAX_URI_LEN)));
                let media_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                content.push(decode(media_type, &blob)?);
            }
            _ => content.push(unknown()),
        },
        _ => content.push(unknown()),
    }
    Ok(())
}

fn unknown() -> SourceContent {
    SourceContent::Text("[content of an unknown kind]".to_owned())
}

fn decode(media_type: String, base64: &str) -> Result<SourceContent, String> {
    // Parameters such as a character set do not matter.
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_owned();
    match STANDARD.decode(base64) {
        Ok(data) => Ok(SourceContent::File { media_type, data }),
        Err(error) => Err(format!("the server returned a file that is not base64: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn output(result: Value, has_schema: bool) -> Result<SourceOutput, String> {
        to_output(serde_json::from_value(result).expect("a result"), has_schema)
    }

    fn text(text: &str) -> SourceContent {
        SourceContent::Text(text.to_owned())
    }

    #[test]
    fn each_kind_of_content_is_converted() {
        let result = json!({"content": [
            {"type": "text", "text": "a\u{1b}[2J\u{202e}b\nc"},
            {"type": "image", "data": "iVBO", "mimeType": "image/png; x=y"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///x\n", "name": "x"},
            {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
            {"type": "resource", "resource": {"uri": "a:c", "blob": "AAAA"}},
        ]});
        let file = |media_type: &str, data: &[u8]| SourceContent::File {
            media_type: media_type.to_owned(),
            data: data.to_vec(),
        };
        let expected = [
            text("a\\u{1b}[2J\\u{202e}b\nc"),
            file("image/png", b"\x89PN"),
            file("audio/wav", &[0, 0, 0]),
            text("[resource x: file:///x]"),
            text("a:b\nt"),
            text("a:c"),
            file("application/octet-stream", &[0, 0, 0]),
        ];
        assert_eq!(output(result, false).expect("it is valid").content, expected);
        let broken = json!({"content": [{"type": "image", "data": "%", "mimeType": "image/png"}]});
        assert!(output(broken, false).is_err());
    }

    #[test]
    fn a_structured_result_without_a_schema_is_text() {
        let result = json!({"content": [], "structuredContent": {"n": 1}});
        let plain = output(result.clone(), false).expect("it is valid");
        assert_eq!((plain.content, plain.structured), (vec![text("{\"n\":1}")], None));
        let checked = output(result, true).expect("it is valid");
        assert_eq!(checked.structured.as_deref(), Some("{\"n\":1}"));
    }

    #[test]
    fn an_error_of_a_tool_is_a_failure_with_its_text() {
        let failed = |content: Value| output(json!({"content": content, "isError": true}), true);
        let problem = failed(json!([{"type": "text", "text": "no such file"}]));
        assert_eq!(problem, Err("no such file".to_owned()));
        assert_eq!(failed(json!([])), Err("the tool failed without saying why".to_owned()));
    }
}
