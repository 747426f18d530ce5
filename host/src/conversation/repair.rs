//! Reading a transcript that somebody else may have written: whatever comes in, a transcript comes out that every
//! provider accepts (R-58), and nobody can read one past this.
//!
//! Calls stand together with their results in every form of a turn, so what is left to mend is little. It is mended by
//! inserting and merging; what the user said and what a call came to stays (R-56). Mending twice is mending once, and the
//! work grows with the length, not faster (R-62).

use serde::Deserialize;

use super::ids::CallIds;
use super::turn::{Block, call_ids};
use super::{Content, Exchange, StopReason, Summary, ToolResult, Transcript, Turn, Usage};
use crate::picture;

/// Stands where a history begins in the middle, since it has to begin with the user (R-61).
const LOST: &str = "(What was said before this is lost.)";

/// Stands for a picture that cannot be sent.
const NO_PICTURE: &str = "(A picture of an unknown type was left out.)";

/// A transcript as it was found.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Found {
    exchanges: Vec<FoundExchange>,
    #[serde(default)]
    summary: Option<Summary>,
}

#[derive(Clone, Debug, Deserialize)]
struct FoundExchange {
    prompt: String,
    turns: Vec<FoundTurn>,
    #[serde(default)]
    overhead: Vec<Usage>,
}

/// A turn as it was found.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct FoundTurn {
    blocks: Vec<Block>,
    #[serde(default)]
    stop: StopReason,
    #[serde(default)]
    usage: Usage,
}

/// A turn of nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a turn has neither text nor a call")]
pub(super) struct NoContent;

impl From<Found> for Transcript {
    fn from(found: Found) -> Self {
        let turns = |turns: Vec<FoundTurn>| turns.into_iter().filter_map(|turn| Turn::try_from(turn).ok()).collect();
        let mut whole = Self::assemble(found.exchanges.into_iter().map(|exchange| Part {
            prompt: exchange.prompt,
            turns: turns(exchange.turns),
            overhead: exchange.overhead,
        }));
        // One that does not fit is left out: what it stood for is all there.
        found.summary.map(|summary| whole.summarise(summary));
        whole
    }
}

impl TryFrom<FoundTurn> for Turn {
    type Error = NoContent;

    fn try_from(found: FoundTurn) -> Result<Self, NoContent> {
        let FoundTurn { mut blocks, stop, usage } = found;
        CallIds::default().make_distinct(call_ids(&mut blocks));
        for block in &mut blocks {
            if let Block::Call(answered) = block {
                name_types(&mut answered.result);
            }
        }
        Self::from_blocks(blocks, stop, usage).ok_or(NoContent)
    }
}

/// Every picture says what it is, in the bytes and in the type.
pub(super) fn name_types(result: &mut ToolResult) {
    result.content.iter_mut().for_each(name_type);
}

fn name_type(content: &mut Content) {
    let Content::Image { media_type, base64 } = content else { return };
    match picture::media_type_of_base64(base64) {
        Some(real) => real.clone_into(media_type),
        None => *content = Content::Text(NO_PICTURE.into()),
    }
}

/// What the user said, and what followed, before it is known to be a whole exchange.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// What the user said, which may be blank.
    pub prompt: String,
    /// The turns that followed.
    pub turns: Vec<Turn>,
    /// What was taken beside them.
    pub overhead: Vec<Usage>,
}

impl Transcript {
    /// A conversation of prompts and the turns that followed each. A blank prompt begins nothing, so its turns go on with
    /// the exchange before; turns between which nobody spoke are one.
    pub fn assemble(parts: impl IntoIterator<Item = Part>) -> Self {
        let mut whole: Vec<Exchange> = Vec::new();
        for Part { prompt, turns, overhead } in parts {
            if !prompt.trim().is_empty() {
                whole.push(Exchange::begun(prompt));
            } else if whole.is_empty() && !turns.is_empty() {
                whole.push(Exchange::begun(LOST.to_owned()));
            }
            if let Some(exchange) = whole.last_mut() {
                exchange.follow(turns);
                overhead.into_iter().for_each(|usage| exchange.cost(usage));
            }
        }
        Self::of(whole)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{AnsweredCall, Call, CallId, Place, Reasoning, ResultStatus, validate};
    use super::*;

    fn word() -> impl Strategy<Value = String> {
        prop_oneof![Just(String::new()), Just(" \n".to_owned()), "[a-zä🦀\"\\\\\n]{1,6}"]
    }

    fn content() -> impl Strategy<Value = Content> {
        let media_type = prop_oneof![Just(String::new()), Just("image/png".to_owned()), Just("image/svg+xml".to_owned())];
        let picture = (media_type, prop_oneof![Just("/9j/abcd".to_owned()), "[a-z]{0,8}"]);
        prop_oneof![word().prop_map(Content::Text), picture.prop_map(|(media_type, base64)| Content::Image { media_type, base64 })]
    }

    fn result() -> impl Strategy<Value = ToolResult> {
        let status = prop::sample::select(vec![
            ResultStatus::Ok,
            ResultStatus::Error,
            ResultStatus::Rejected,
            ResultStatus::NotRun,
            ResultStatus::Interrupted,
        ]);
        (status, prop::collection::vec(content(), 0..3)).prop_map(|(status, content)| ToolResult { status, content })
    }

    fn block() -> impl Strategy<Value = Block> {
        let id = prop::sample::select(vec!["", "a", "a_2", "call_1", "functions.read:0", "🦀"]);
        prop_oneof![
            word().prop_map(Block::Text),
            word().prop_map(|data| Block::Reasoning(Reasoning::Opaque { data })),
            word().prop_map(|data| Block::Reasoning(Reasoning::Sealed { id: "rs_1".into(), summary: vec![data.clone()], data })),
            (id, word(), word(), result()).prop_map(|(id, name, arguments, result)| {
                Block::Call(AnsweredCall { call: Call { id: CallId::new(id), name, arguments }, result })
            }),
        ]
    }

    fn found() -> impl Strategy<Value = Found> {
        let stop = prop::sample::select(vec![StopReason::End, StopReason::Interrupted, StopReason::Other("novel".into())]);
        let turn =
            (prop::collection::vec(block(), 0..5), stop).prop_map(|(blocks, stop)| FoundTurn { blocks, stop, usage: Usage::default() });
        let exchange =
            (word(), prop::collection::vec(turn, 0..4)).prop_map(|(prompt, turns)| FoundExchange { prompt, turns, overhead: Vec::new() });
        let place = (0_usize..6, 0_usize..5).prop_map(|(exchange, turn)| Place { exchange, turn });
        let summary = (word(), place).prop_map(|(text, until)| Summary { text, until, turns: 1, tokens: 1 });
        (prop::collection::vec(exchange, 0..5), prop::option::of(summary)).prop_map(|(exchanges, summary)| Found { exchanges, summary })
    }

    /// What may not be lost, in its order: prompts, texts, calls with their results.
    #[derive(Debug, PartialEq)]
    enum Kept {
        Prompt(String),
        Text(String),
        Call(String, String, ResultStatus, Vec<String>),
    }

    fn kept_of(blocks: &[Block]) -> impl Iterator<Item = Kept> {
        blocks.iter().filter_map(|block| match block {
            Block::Text(text) => (!text.trim().is_empty()).then(|| Kept::Text(text.clone())),
            Block::Reasoning(_) => None,
            Block::Call(AnsweredCall { call, result }) => {
                let texts = result.content.iter().filter_map(|content| match content {
                    Content::Text(text) if text != NO_PICTURE => Some(text.clone()),
                    Content::Text(_) | Content::Image { .. } => None,
                });
                Some(Kept::Call(call.name.clone(), call.arguments.clone(), result.status, texts.collect()))
            }
        })
    }

    fn prompt(text: &str) -> Option<Kept> {
        (!text.trim().is_empty() && text != LOST).then(|| Kept::Prompt(text.to_owned()))
    }

    proptest! {
        #[test]
        fn r058_whatever_is_found_becomes_valid(found in found()) {
            prop_assert_eq!(validate(&Transcript::from(found)), Ok(()));
        }

        #[test]
        fn r058_mending_twice_is_mending_once(found in found()) {
            let once = Transcript::from(found);
            let text = serde_json::to_string(&once).expect("it is data");
            let twice: Transcript = serde_json::from_str(&text).expect("it is a transcript");
            prop_assert_eq!(once, twice);
        }

        #[test]
        fn r056_no_word_of_the_user_and_no_result_is_lost(found in found()) {
            let before: Vec<Kept> = found.exchanges.iter().flat_map(|exchange| {
                prompt(&exchange.prompt).into_iter().chain(exchange.turns.iter().flat_map(|turn| kept_of(&turn.blocks)))
            }).collect();
            let mended = Transcript::from(found);
            let after: Vec<Kept> = mended.exchanges().iter().flat_map(|exchange| {
                prompt(exchange.prompt()).into_iter().chain(exchange.turns().iter().flat_map(|turn| kept_of(turn.blocks())))
            }).collect();
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn r061_a_history_without_a_beginning_gets_one() {
        let text = r#"{"exchanges": [{"prompt": " ", "turns": [{"blocks": [{"text": "out of nowhere"}]}]}]}"#;
        let transcript: Transcript = serde_json::from_str(text).expect("it is mended");
        assert_eq!(transcript.exchanges()[0].prompt(), LOST);
        assert_eq!(validate(&transcript), Ok(()));
    }

    #[test]
    fn r054_a_turn_of_nothing_is_refused_alone_and_passed_over_in_a_transcript() {
        let nothing = r#"{"blocks": [{"text": " "}]}"#;
        assert!(serde_json::from_str::<Turn>(nothing).is_err());
        let text = format!(r#"{{"exchanges": [{{"prompt": "hello", "turns": [{nothing}]}}]}}"#);
        let transcript: Transcript = serde_json::from_str(&text).expect("it is mended");
        assert!(transcript.exchanges()[0].turns().is_empty());
    }

    #[test]
    fn r062_the_work_grows_with_the_length() {
        let call = || {
            let call = Call { id: CallId::new("same"), name: "grep".into(), arguments: "{}".into() };
            Block::Call(AnsweredCall { call, result: ToolResult::ok("found") })
        };
        let turn = |blocks| FoundTurn { blocks, stop: StopReason::End, usage: Usage::default() };
        let said = (0..20_000).map(|_| turn(vec![Block::Text("more".into())]));
        let found = Found {
            exchanges: vec![FoundExchange {
                prompt: "go".into(),
                turns: said.chain([turn((0..20_000).map(|_| call()).collect())]).collect(),
                overhead: Vec::new(),
            }],
            summary: None,
        };
        let started = std::time::Instant::now();
        let transcript = Transcript::from(found);
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
        assert_eq!(transcript.exchanges()[0].turns().len(), 1);
        assert_eq!(validate(&transcript), Ok(()));
    }
}
