//! The entry point for the fuzz targets: decodes a stream without a network.

use super::failure::{AttemptFailure, ServerEndpoint};
use super::sse::SseParser;
use super::wire::{DecodeProgress, DeltaSink, StreamDecoder};
use super::{anthropic, openai, responses};
use crate::agent::ports::ResponseDelta;
use crate::conversation::ModelResponse;

/// The wire format of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's chat completions API.
    OpenAi,
    /// OpenAI's Responses API.
    Responses,
}

/// Decodes a stream that arrives in these pieces.
///
/// # Errors
///
/// Returns the error message if the stream is not a complete response.
pub fn decode_stream(format: StreamFormat, pieces: &[&[u8]]) -> Result<ModelResponse, String> {
    let endpoint = ServerEndpoint {
        provider: "The fuzzer",
        host: "nowhere".into(),
        key_variable: "KEY",
        key: None,
    };
    let response = match format {
        StreamFormat::Anthropic => {
            decode(anthropic::stream::AnthropicStream::new(&endpoint), pieces)
        }
        StreamFormat::OpenAi => {
            decode(openai::stream::ChatCompletionStream::new(&endpoint), pieces)
        }
        StreamFormat::Responses => {
            decode(responses::stream::ResponsesStream::new(&endpoint), pieces)
        }
    };
    response.map_err(|failure| failure.message)
}

fn decode<W: StreamDecoder>(
    mut decoder: W,
    pieces: &[&[u8]],
) -> Result<ModelResponse, AttemptFailure> {
    let mut on_delta = |_: ResponseDelta<'_>| {};
    let mut sink = DeltaSink::new(&mut on_delta, true);
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    for piece in pieces {
        let pushed = parser.push(piece, &mut events);
        for event in events.drain(..) {
            if decoder.decode(&event, &mut sink)? == DecodeProgress::Done {
                return decoder.finish_reason();
            }
        }
        if pushed.is_err() {
            return decoder.finish_reason();
        }
    }
    if let Some(last) = parser.finish() {
        decoder.decode(&last, &mut sink)?;
    }
    decoder.finish_reason()
}
