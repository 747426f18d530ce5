//! The way in for the fuzz targets: a stream as an adapter reads it, without the network around it.

use super::failure::{Failure, Place};
use super::sse::Parser;
use super::wire::{Hand, Progress, Wire};
use super::{anthropic, openai, responses};
use crate::agent::ports::Delta;
use crate::conversation::Response;

/// Whose words a stream is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
}

/// What an adapter makes of a stream that comes in these pieces; `Err` has what it says of one that is no response.
pub fn read_stream(format: Format, pieces: &[&[u8]]) -> Result<Response, String> {
    let place = Place { provider: "The fuzzer", host: "nowhere".into(), key_name: "KEY", key: None };
    let response = match format {
        Format::Anthropic => read(anthropic::stream::Stream::new(&place), pieces),
        Format::OpenAi => read(openai::stream::Stream::new(&place), pieces),
        Format::Responses => read(responses::stream::Stream::new(&place), pieces),
    };
    response.map_err(|failure| failure.message)
}

fn read<W: Wire>(mut wire: W, pieces: &[&[u8]]) -> Result<Response, Failure> {
    let mut on_delta = |_: Delta<'_>| {};
    let mut hand = Hand::new(&mut on_delta, true);
    let mut parser = Parser::default();
    let mut events = Vec::new();
    for piece in pieces {
        let pushed = parser.push(piece, &mut events);
        for event in events.drain(..) {
            if wire.event(&event, &mut hand)? == Progress::Over {
                return wire.finish();
            }
        }
        if pushed.is_err() {
            return wire.finish();
        }
    }
    if let Some(last) = parser.finish() {
        wire.event(&last, &mut hand)?;
    }
    wire.finish()
}
