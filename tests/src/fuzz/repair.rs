//! Mending a conversation that somebody else wrote.

use cofferdam::conversation::{ResultContent, Transcript, TurnContentBlock, validate};
use serde_json::Value;

/// Whatever is read as a conversation is a valid one, mending it twice is mending it once,
/// and no prompt, text or result is missing.
pub fn repair(data: &[u8]) {
    let Ok(mended) = serde_json::from_slice::<Transcript>(data) else { return };
    assert_eq!(validate(&mended), Ok(()));
    let stored = serde_json::to_string(&mended).expect("a conversation is data");
    let twice: Transcript = serde_json::from_str(&stored).expect("what was mended is read");
    assert_eq!(twice, mended);

    let Ok(found) = serde_json::from_slice::<Value>(data) else { return };
    let kept = transcript_texts(&mended);
    for text in json_texts(&found) {
        assert!(kept.iter().any(|kept| kept.contains(&text)), "{text:?} was lost");
    }
}

fn transcript_texts(transcript: &Transcript) -> Vec<String> {
    let mut texts = Vec::new();
    for exchange in transcript.exchanges() {
        texts.push(exchange.prompt().to_owned());
        for block in exchange.turns().iter().flat_map(|turn| turn.blocks()) {
            match block {
                TurnContentBlock::Text(text) => texts.push(text.clone()),
                TurnContentBlock::Reasoning(_) => {}
                TurnContentBlock::Call(answered) => texts.extend(
                    answered.result.content.iter().filter_map(|content| match content {
                        ResultContent::Text(text) => Some(text.clone()),
                        ResultContent::Image { .. } => None,
                    }),
                ),
            }
        }
    }
    texts
}

/// Where the format has texts. Of a key that is there twice the reader refuses the file, so the
/// last one is the only one.
fn json_texts(found: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for exchange in list(&found["exchanges"]) {
        texts.extend(exchange["prompt"].as_str().map(str::to_owned));
        for block in list(&exchange["turns"]).iter().flat_map(|turn| list(&turn["blocks"])) {
            texts.extend(block["text"].as_str().map(str::to_owned));
            texts.extend(
                list(&block["call"]["result"]["content"])
                    .iter()
                    .filter_map(|piece| Some(piece["text"].as_str()?.to_owned())),
            );
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    texts
}
