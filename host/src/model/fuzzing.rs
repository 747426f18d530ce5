//! The way in for the fuzz targets: a stream as an adapter reads it, without the network around it.

use super::failure::{AttemptFailure, ServerEndpoint};
use super::sse::SseParser;
use super::wire::{DecodeProgress, DeltaSink, StreamDecoder};
use super::{anthropic, openai, responses};
use crate::agent::ports::ResponseDelta;
use crate::conversation::ModelResponse;

/// Whose words a stream is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
}

/// What an adapter makes of a stream that comes in these pieces; `Err` has what it says of one that
/// is no response.
pub fn decode_stream(format: StreamFormat, pieces: &[&[u8]]) -> Result<ModelResponse, String> {
    let place = ServerEndpoint {
        provider: "The fuzzer",
        host: "nowhere".into(),
        key_variable: "KEY",
        key: None,
    };
    let response = match format {
        StreamFormat::Anthropic => decode(anthropic::stream::AnthropicStream::new(&place), pieces),
        StreamFormat::OpenAi => decode(openai::stream::ChatCompletionStream::new(&place), pieces),
        StreamFormat::Responses => decode(responses::stream::ResponsesStream::new(&place), pieces),
    };
    response.map_err(|failure| failure.message)
}

fn decode<W: StreamDecoder>(
    mut wire: W,
    pieces: &[&[u8]],
) -> Result<ModelResponse, AttemptFailure> {
    let mut on_delta = |_: ResponseDelta<'_>| {};
    let mut hand = DeltaSink::new(&mut on_delta, true);
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    for piece in pieces {
        let pushed = parser.push(piece, &mut events);
        for event in events.drain(..) {
            if wire.decode(&event, &mut hand)? == DecodeProgress::Done {
                return wire.finish_reason();
            }
        }
        if pushed.is_err() {
            return wire.finish_reason();
        }
    }
    if let Some(last) = parser.finish() {
        wire.decode(&last, &mut hand)?;
    }
    wire.finish_reason()
}
