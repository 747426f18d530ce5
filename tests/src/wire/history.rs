//! One request after the other: nothing that was said is lost or changed (R-09, R-57).
//!
//! There are two exceptions, and each leaves its traces. An old result may be left out: then a
//! fixed text stands in its place, under the same id, and it stays left out (R-65). And a summary
//! may take the place of the oldest part: then the model was asked for one right before, the
//! summary is marked as the host's, and all that comes after it is the rest of what was there, as
//! it was (R-70).

use serde_json::Value;

use super::{Provider, ReceivedRequest, anthropic, openai, responses};

/// How a note of the host begins, which is for one request only (R-78).
pub(super) const NOTE_PREFIX: &str = "[A note from the host, not a message from the user]";
/// How a summary begins and ends, and what stands for a result that was left out.
const SUMMARY_PREFIX: &str = "[Context from the host, not a message from the user: ";
const SUMMARY_SUFFIX: &str = "\n\n[End of the summary.]";
pub(super) const PLACEHOLDER: &str = cofferdam::conversation::PRUNED_PLACEHOLDER;
/// How the system prompt of a request for a summary begins.
const SUMMARY_SYSTEM_PREFIX: &str = "You summarise the work of a coding agent";

/// A piece of the history, whatever its format.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HistoryItem {
    /// Text on the user's side.
    User(String),
    /// A result: all of it but its text, and whether it was left out.
    Result { result: Value, without_text: Value, is_pruned: bool },
    /// Anything else.
    Other(Value),
}

/// Whether each request begins with all that the one before it held, under the same system prompt
/// and with the same tools.
pub(super) fn check_history(requests: &[ReceivedRequest]) -> Result<(), String> {
    let mut earlier: Option<(usize, &ReceivedRequest)> = None;
    let mut was_summarised = false;
    for (at, later) in requests.iter().enumerate() {
        if later.system_prompt().starts_with(SUMMARY_SYSTEM_PREFIX) {
            was_summarised = true;
            continue;
        }
        if let Some((before, request)) = earlier {
            let places = format!("request {} does not follow from request {}", at + 1, before + 1);
            compare_histories(&history_items(request), &history_items(later), was_summarised)
                .map_err(|problem| {
                    format!("{places}: {problem}\n{:#}\n{:#}", later.body, request.body)
                })?;
            // Each request of the user has a system prompt of its own, which tells the mode (R-93);
            // within one it stays.
            let begins_anew = matches!(history_items(later).last(), Some(HistoryItem::User(_)));
            if (request.system_prompt() != later.system_prompt() && !begins_anew)
                || request.tool_names() != later.tool_names()
            {
                return Err(format!(
                    "request {} has another system prompt or other tools than request {}",
                    at + 1,
                    before + 1
                ));
            }
        }
        earlier = Some((at, later));
        was_summarised = false;
    }
    Ok(())
}

fn history_items(request: &ReceivedRequest) -> Vec<HistoryItem> {
    match request.provider {
        Provider::OpenAi => openai::history_items(&request.body),
        Provider::Anthropic => anthropic::history_items(&request.body),
        Provider::Responses => responses::history_items(&request.body),
    }
}

fn compare_histories(
    earlier: &[HistoryItem],
    later: &[HistoryItem],
    was_summarised: bool,
) -> Result<(), String> {
    let (before, now) = (summary(earlier), summary(later));
    if before == now {
        return check_prefix(later, earlier);
    }
    let Some(HistoryItem::User(first)) = later.first().filter(|_| now.is_some()) else {
        return Err("the summary is gone".into());
    };
    if !was_summarised {
        return Err("there is a new summary, and nobody asked for it".into());
    }
    // After the summary stands the prompt under which the rest was said, or the next one.
    let prompt = first
        .split_once(SUMMARY_SUFFIX)
        .map(|(_, prompt)| prompt.trim_start_matches('\n'))
        .unwrap_or_default();
    let rest = if prompt.is_empty() { &later[1..] } else { later };
    let is_prompt = |piece: &HistoryItem, rest: &[HistoryItem]| match (piece, rest.first()) {
        (HistoryItem::User(a), Some(HistoryItem::User(b))) => {
            b.ends_with(a.as_str()) || a.ends_with(b.as_str())
        }
        _ => false,
    };
    let fresh = |tail: &[HistoryItem]| {
        // What is new begins with a new response, and nothing of what was there comes back as new.
        !matches!(tail.first(), Some(HistoryItem::Result { .. }))
            && !tail
                .iter()
                .any(|piece| matches!(piece, HistoryItem::Other(_)) && earlier.contains(piece))
    };
    let said = rest.get(1..).unwrap_or_default();
    let is_rest =
        |kept: &[HistoryItem]| check_prefix(said, kept).is_ok() && fresh(&said[kept.len()..]);
    // Cut before a prompt, within an exchange, or after everything; never between a call and its
    // result.
    let follows = (0..=earlier.len())
        .filter(|cut| !matches!(earlier.get(*cut), Some(HistoryItem::Result { .. })))
        .any(|cut| {
            let kept = &earlier[cut..];
            let prompt_before =
                earlier[..cut].iter().rev().find(|piece| matches!(piece, HistoryItem::User(_)));
            let whole =
                kept.first().is_some_and(|piece| is_prompt(piece, rest)) && is_rest(&kept[1..]);
            let within = prompt_before.is_some_and(|piece| is_prompt(piece, rest)) && is_rest(kept);
            let after = kept.is_empty()
                && matches!(rest.first(), Some(HistoryItem::User(_)))
                && is_rest(&[]);
            whole || within || after
        });
    if follows {
        Ok(())
    } else {
        Err("what comes after the summary is not the rest of what was there".into())
    }
}

/// The summary, if there is one.
fn summary(pieces: &[HistoryItem]) -> Option<&str> {
    match pieces.first()? {
        HistoryItem::User(text) if text.starts_with(SUMMARY_PREFIX) => {
            text.split_once(SUMMARY_SUFFIX).map(|(summary, _)| summary)
        }
        HistoryItem::User(_) | HistoryItem::Result { .. } | HistoryItem::Other(_) => None,
    }
}

fn check_prefix(later: &[HistoryItem], earlier: &[HistoryItem]) -> Result<(), String> {
    if later.len() < earlier.len() {
        return Err(format!("{} pieces became {}", earlier.len(), later.len()));
    }
    let same = |(a, b): (&HistoryItem, &HistoryItem)| match (a, b) {
        (
            HistoryItem::Result { without_text: a, .. },
            HistoryItem::Result { without_text: b, is_pruned: true, .. },
        ) => a == b,
        _ => a == b,
    };
    match earlier.iter().zip(later).position(|pair| !same(pair)) {
        Some(at) => {
            Err(format!("piece {} changed: {:#?} became {:#?}", at + 1, earlier[at], later[at]))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request_with(messages: Value) -> ReceivedRequest {
        ReceivedRequest {
            provider: Provider::OpenAi,
            path: String::new(),
            headers: Vec::new(),
            body: json!({"messages": messages}),
        }
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn result(text: &str) -> Value {
        json!({"role": "tool", "tool_call_id": "c", "content": text})
    }

    fn called(text: &str) -> Value {
        json!({"role": "assistant", "content": text, "tool_calls": [{"id": "c"}]})
    }

    #[test]
    fn r009_a_history_that_changed_is_found() {
        let first = request_with(json!([user("a")]));
        let grown = request_with(json!([user("a"), {"role": "assistant", "content": "b"}]));
        let other = request_with(json!([user("A"), {"role": "assistant", "content": "b"}]));
        assert!(check_history(&[first.clone(), grown.clone()]).is_ok());
        assert!(check_history(&[first, other]).is_err());
        assert!(check_history(&[grown, request_with(json!([]))]).is_err());
    }

    #[test]
    fn r078_a_note_is_no_history() {
        let noted = request_with(json!([user(&format!("a\n\n{NOTE_PREFIX}\nGo on."))]));
        assert!(check_history(&[noted, request_with(json!([user("a")]))]).is_ok());
        let alone = request_with(json!([
            user("a"),
            called("b"),
            result("r"),
            user(&format!("{NOTE_PREFIX}\nGo on."))
        ]));
        assert!(
            check_history(&[alone, request_with(json!([user("a"), called("b"), result("r")]))])
                .is_ok()
        );
    }

    #[test]
    fn r065_a_result_may_be_left_out_and_does_not_come_back() {
        let whole = request_with(json!([user("a"), called("b"), result("long")]));
        let left_out = request_with(json!([user("a"), called("b"), result(PLACEHOLDER)]));
        let changed = request_with(json!([user("a"), called("b"), result("other")]));
        assert!(check_history(&[whole.clone(), left_out.clone()]).is_ok());
        assert!(check_history(&[left_out, whole.clone()]).is_err());
        assert!(check_history(&[whole, changed]).is_err());
    }

    #[test]
    fn r070_a_summary_takes_the_place_of_the_oldest_part_and_of_nothing_else() {
        let summary = |words: &str, rest: &str| {
            user(&format!("{SUMMARY_PREFIX}]\n\n{words}{SUMMARY_SUFFIX}{rest}"))
        };
        let asked_for_it = request_with(
            json!([{"role": "system", "content": SUMMARY_SYSTEM_PREFIX}, user("Summarise.")]),
        );
        let before =
            request_with(json!([user("a"), called("b"), result("r"), called("c"), result("s")]));
        let good = [
            json!([summary("S", "\n\na"), called("c"), result("s"), called("d"), result("t")]),
            json!([summary("S", "\n\na"), called("c"), result("s")]),
            json!([summary("S", "\n\na")]),
        ];
        for later in good {
            assert_eq!(
                check_history(&[before.clone(), asked_for_it.clone(), request_with(later.clone())]),
                Ok(())
            );
            assert!(
                check_history(&[before.clone(), request_with(later)]).is_err(),
                "nobody asked for it"
            );
        }
        let bad = [
            json!([summary("S", "\n\na"), result("s")]),
            json!([summary("S", "\n\nx"), called("c"), result("s")]),
            json!([summary("S", "\n\na"), called("c"), result("changed")]),
        ];
        for later in bad {
            assert!(
                check_history(&[before.clone(), asked_for_it.clone(), request_with(later.clone())])
                    .is_err(),
                "{later}"
            );
        }
    }
}
