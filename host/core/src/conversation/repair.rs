//! Repair of transcripts from an external source.
//!
//! Whatever the input is, the result is a transcript that every provider accepts (R-58).
//! Deserialization always goes through this module.
//!
//! Every form of a turn contains the calls together with their results, so little can be wrong. The
//! repair only inserts and merges, and loses no user text and no result (R-56). It is idempotent
//! and takes linear time (R-62).

use serde::Deserialize;

use super::ids::CallIdAllocator;
use super::turn::{TurnContentBlock, call_ids};
use super::{
    AssistantTurn, ResultContent, RollingSummary, StopReason, TokenUsage, ToolResult, Transcript,
    UserExchange,
};
use crate::image_type;

/// The prompt for turns that have none, since a history must begin with the user (R-61).
const LOST_PROMPT: &str = "(The earlier messages are lost.)";

/// The text that replaces an image that cannot be sent.
const IMAGE_PLACEHOLDER: &str = "(An image of an unknown type was omitted.)";

/// A deserialized transcript before the repair.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct UncheckedTranscript {
    exchanges: Vec<UncheckedExchange>,
    #[serde(default)]
    summary: Option<RollingSummary>,
}

#[derive(Clone, Debug, Deserialize)]
struct UncheckedExchange {
    prompt: String,
    turns: Vec<UncheckedTurn>,
    #[serde(default)]
    overhead: Vec<TokenUsage>,
}

/// A deserialized turn before the repair.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct UncheckedTurn {
    blocks: Vec<TurnContentBlock>,
    #[serde(default)]
    stop: StopReason,
    #[serde(default)]
    usage: TokenUsage,
}

/// The error for a turn with neither text nor calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a turn has neither text nor a call")]
pub(super) struct EmptyTurn;

impl From<UncheckedTranscript> for Transcript {
    fn from(found: UncheckedTranscript) -> Self {
        let turns = |turns: Vec<UncheckedTurn>| {
            turns.into_iter().filter_map(|turn| AssistantTurn::try_from(turn).ok()).collect()
        };
        let mut transcript =
            Self::assemble(found.exchanges.into_iter().map(|exchange| FoundMessage {
                prompt: exchange.prompt,
                turns: turns(exchange.turns),
                overhead: exchange.overhead,
            }));
        // A summary that does not fit is dropped. The transcript still has the turns it replaced.
        if let Some(summary) = found.summary {
            transcript.apply_summary(summary);
        }
        transcript
    }
}

impl TryFrom<UncheckedTurn> for AssistantTurn {
    type Error = EmptyTurn;

    fn try_from(found: UncheckedTurn) -> Result<Self, EmptyTurn> {
        let UncheckedTurn { mut blocks, stop, usage } = found;
        CallIdAllocator::default().make_distinct(call_ids(&mut blocks));
        for block in &mut blocks {
            if let TurnContentBlock::Call(answered) = block {
                fix_media_types(&mut answered.result);
            }
        }
        Self::from_blocks(blocks, stop, usage).ok_or(EmptyTurn)
    }
}

/// Sets the media type of every image by its bytes, and replaces unknown images with text.
pub(super) fn fix_media_types(result: &mut ToolResult) {
    result.content.iter_mut().for_each(fix_media_type);
}

fn fix_media_type(content: &mut ResultContent) {
    let ResultContent::Image { media_type, base64 } = content else { return };
    match image_type::media_type_from_base64(base64) {
        Some(real) => real.clone_into(media_type),
        None => *content = ResultContent::Text(IMAGE_PLACEHOLDER.into()),
    }
}

/// A prompt and the turns that followed it, before the repair.
#[derive(Clone, Debug, Default)]
pub struct FoundMessage {
    /// The text of the user, which may be blank.
    pub prompt: String,
    /// The turns that followed the prompt.
    pub turns: Vec<AssistantTurn>,
    /// The tokens that were used in addition to those of the turns.
    pub overhead: Vec<TokenUsage>,
}

impl Transcript {
    /// Builds a transcript from prompts and the turns that followed each.
    ///
    /// A blank prompt does not begin an exchange, so its turns belong to the exchange before it.
    /// Adjacent turns without calls are merged into one.
    pub fn assemble(parts: impl IntoIterator<Item = FoundMessage>) -> Self {
        let mut exchanges: Vec<UserExchange> = Vec::new();
        for FoundMessage { prompt, turns, overhead } in parts {
            if !prompt.trim().is_empty() {
                exchanges.push(UserExchange::new(prompt));
            } else if exchanges.is_empty() && !turns.is_empty() {
                exchanges.push(UserExchange::new(LOST_PROMPT.to_owned()));
            }
            if let Some(exchange) = exchanges.last_mut() {
                exchange.add_turns(turns);
                for usage in overhead {
                    exchange.add_usage(usage);
                }
            }
        }
        Self::from_exchanges(exchanges)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{
        AnsweredCall, CallId, ModelReasoning, ModelResponse, OpenTurn, ResponseBlock, ResultStatus,
        ToolCall, TurnIndex, validate,
    };
    use super::*;

    fn word() -> impl Strategy<Value = String> {
        prop_oneof![Just(String::new()), Just(" \n".to_owned()), "[a-zä🦀\"\\\\\n]{1,6}"]
    }

    fn content() -> impl Strategy<Value = ResultContent> {
        let media_type = prop_oneof![
            Just(String::new()),
            Just("image/png".to_owned()),
            Just("image/svg+xml".to_owned())
        ];
        let picture = (media_type, prop_oneof![Just("/9j/abcd".to_owned()), "[a-z]{0,8}"]);
        prop_oneof![
            word().prop_map(ResultContent::Text),
            picture.prop_map(|(media_type, base64)| ResultContent::Image { media_type, base64 })
        ]
    }

    fn result() -> impl Strategy<Value = ToolResult> {
        let status = prop::sample::select(vec![
            ResultStatus::Ok,
            ResultStatus::Error,
            ResultStatus::Rejected,
            ResultStatus::NotRun,
            ResultStatus::Interrupted,
        ]);
        (status, prop::collection::vec(content(), 0..3))
            .prop_map(|(status, content)| ToolResult { status, content })
    }

    fn block() -> impl Strategy<Value = TurnContentBlock> {
        let id = prop::sample::select(vec!["", "a", "a_2", "call_1", "functions.read:0", "🦀"]);
        prop_oneof![
            word().prop_map(TurnContentBlock::Text),
            word().prop_map(|data| TurnContentBlock::Reasoning(ModelReasoning::Opaque { data })),
            word().prop_map(|data| TurnContentBlock::Reasoning(ModelReasoning::Sealed {
                id: "rs_1".into(),
                summary: vec![data.clone()],
                data
            })),
            (id, word(), word(), result()).prop_map(|(id, name, arguments, result)| {
                TurnContentBlock::Call(AnsweredCall {
                    call: ToolCall { id: CallId::new(id), name, arguments },
                    result,
                })
            }),
        ]
    }

    fn found() -> impl Strategy<Value = UncheckedTranscript> {
        let stop = prop::sample::select(vec![
            StopReason::End,
            StopReason::Interrupted,
            StopReason::Other("novel".into()),
        ]);
        let turn = (prop::collection::vec(block(), 0..5), stop).prop_map(|(blocks, stop)| {
            UncheckedTurn { blocks, stop, usage: TokenUsage::default() }
        });
        let exchange = (word(), prop::collection::vec(turn, 0..4))
            .prop_map(|(prompt, turns)| UncheckedExchange { prompt, turns, overhead: Vec::new() });
        let index =
            (0_usize..6, 0_usize..5).prop_map(|(exchange, turn)| TurnIndex { exchange, turn });
        let summary = (word(), index).prop_map(|(text, until)| RollingSummary {
            text,
            until,
            turns: 1,
            tokens: 1,
        });
        (prop::collection::vec(exchange, 0..5), prop::option::of(summary))
            .prop_map(|(exchanges, summary)| UncheckedTranscript { exchanges, summary })
    }

    /// The content that the repair must not lose, in order: prompts, texts, calls with results.
    #[derive(Debug, PartialEq)]
    enum KeptContent {
        Prompt(String),
        Text(String),
        Call(String, String, ResultStatus, Vec<String>),
    }

    fn kept_content(blocks: &[TurnContentBlock]) -> impl Iterator<Item = KeptContent> {
        blocks.iter().filter_map(|block| match block {
            TurnContentBlock::Text(text) => {
                (!text.trim().is_empty()).then(|| KeptContent::Text(text.clone()))
            }
            TurnContentBlock::Reasoning(_) => None,
            TurnContentBlock::Call(AnsweredCall { call, result }) => {
                let texts = result.content.iter().filter_map(|content| match content {
                    ResultContent::Text(text) if text != IMAGE_PLACEHOLDER => Some(text.clone()),
                    ResultContent::Text(_) | ResultContent::Image { .. } => None,
                });
                Some(KeptContent::Call(
                    call.name.clone(),
                    call.arguments.clone(),
                    result.status,
                    texts.collect(),
                ))
            }
        })
    }

    fn kept_prompt(text: &str) -> Option<KeptContent> {
        (!text.trim().is_empty() && text != LOST_PROMPT)
            .then(|| KeptContent::Prompt(text.to_owned()))
    }

    proptest! {
        #[test]
        fn r058_any_input_becomes_a_valid_transcript(found in found()) {
            prop_assert_eq!(validate(&Transcript::from(found)), Ok(()));
        }

        #[test]
        fn r058_repair_is_idempotent(found in found()) {
            let once = Transcript::from(found);
            let text = serde_json::to_string(&once).expect("valid JSON");
            let twice: Transcript = serde_json::from_str(&text).expect("a transcript");
            prop_assert_eq!(once, twice);
        }

        #[test]
        fn r056_repair_loses_no_user_text_and_no_result(found in found()) {
            let before: Vec<KeptContent> = found
                .exchanges
                .iter()
                .flat_map(|exchange| {
                    let turns = exchange.turns.iter();
                    kept_prompt(&exchange.prompt)
                        .into_iter()
                        .chain(turns.flat_map(|turn| kept_content(&turn.blocks)))
                })
                .collect();
            let repaired = Transcript::from(found);
            let after: Vec<KeptContent> = repaired
                .exchanges()
                .iter()
                .flat_map(|exchange| {
                    let turns = exchange.turns().iter();
                    kept_prompt(exchange.prompt())
                        .into_iter()
                        .chain(turns.flat_map(|turn| kept_content(turn.blocks())))
                })
                .collect();
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn r061_a_history_without_a_prompt_gets_a_placeholder() {
        let text = r#"{"exchanges": [
            {"prompt": " ", "turns": [{"blocks": [{"text": "out of nowhere"}]}]}
        ]}"#;
        let transcript: Transcript = serde_json::from_str(text).expect("repaired");
        assert_eq!(transcript.exchanges()[0].prompt(), LOST_PROMPT);
        assert_eq!(validate(&transcript), Ok(()));
    }

    #[test]
    fn r054_an_empty_turn_is_refused_alone_and_skipped_in_a_transcript() {
        let nothing = r#"{"blocks": [{"text": " "}]}"#;
        assert!(serde_json::from_str::<AssistantTurn>(nothing).is_err());
        let text = format!(r#"{{"exchanges": [{{"prompt": "hello", "turns": [{nothing}]}}]}}"#);
        let transcript: Transcript = serde_json::from_str(&text).expect("repaired");
        assert!(transcript.exchanges()[0].turns().is_empty());
    }

    #[test]
    fn an_image_gets_the_type_of_its_bytes_and_an_unknown_one_becomes_text() {
        let image = |media_type: &str, base64: &str| ResultContent::Image {
            media_type: media_type.into(),
            base64: base64.into(),
        };
        let result = || ToolResult {
            status: ResultStatus::Ok,
            content: vec![image("image/png", "/9j/abcd"), image("image/svg+xml", "PHN2Zz4=")],
        };
        let call = ToolCall { id: CallId::new("c"), name: "read".into(), arguments: "{}".into() };
        // The result comes from a tool or from a file.
        let mut open = OpenTurn::new(ModelResponse {
            blocks: vec![ResponseBlock::Call(call.clone())],
            ..ModelResponse::default()
        })
        .expect("has a call");
        open.answer(0, result());
        let read = AssistantTurn::try_from(UncheckedTurn {
            blocks: vec![TurnContentBlock::Call(AnsweredCall { call, result: result() })],
            stop: StopReason::Calls,
            usage: TokenUsage::default(),
        })
        .expect("has a call");
        for turn in [open.close("unused"), read] {
            let contents: Vec<&[ResultContent]> =
                turn.calls().map(|answered| answered.result.content.as_slice()).collect();
            let placeholder = ResultContent::Text(IMAGE_PLACEHOLDER.into());
            assert_eq!(contents, [[image("image/jpeg", "/9j/abcd"), placeholder]]);
        }
    }

    #[test]
    fn r062_repair_takes_linear_time() {
        let call = || {
            let call =
                ToolCall { id: CallId::new("same"), name: "grep".into(), arguments: "{}".into() };
            TurnContentBlock::Call(AnsweredCall { call, result: ToolResult::ok("found") })
        };
        let turn =
            |blocks| UncheckedTurn { blocks, stop: StopReason::End, usage: TokenUsage::default() };
        let texts = (0..20_000).map(|_| turn(vec![TurnContentBlock::Text("more".into())]));
        let found = UncheckedTranscript {
            exchanges: vec![UncheckedExchange {
                prompt: "go".into(),
                turns: texts.chain([turn((0..20_000).map(|_| call()).collect())]).collect(),
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
