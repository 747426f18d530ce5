//! Reading a provider's stream of events.

use cofferdam::conversation::{AssistantTurn, OpenTurn, Transcript, validate};
use cofferdam::model::fuzzing::{StreamFormat, decode_stream};

/// The first byte says whose words the stream is in, the next four where it is cut, the rest is the
/// stream.
///
/// - Wherever it is cut it gives the same response, or the same error.
/// - A response makes a valid turn of a conversation, whatever it holds.
pub fn stream(data: &[u8]) {
    let Some((head, bytes)) = data.split_first_chunk::<5>() else { return };
    let format = [StreamFormat::Anthropic, StreamFormat::OpenAi, StreamFormat::Responses]
        [usize::from(head[0] % 3)];
    let mut cuts: Vec<usize> =
        head[1..].iter().map(|cut| usize::from(*cut) * bytes.len() / 255).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();

    let whole = decode_stream(format, &[bytes]);
    assert_eq!(decode_stream(format, &pieces), whole);
    let Ok(response) = whole else { return };
    let turn = match OpenTurn::new(response) {
        Ok(open) => Some(open.close("it is only read")),
        Err(response) => AssistantTurn::without_calls(response),
    };
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Go on.");
    turn.into_iter().for_each(|turn| transcript.record(turn));
    assert_eq!(validate(&transcript), Ok(()));
}
