//! One request after the other: nothing that was said is lost or changed (R-09, R-57).
//!
//! There are two exceptions, and each leaves its traces. An old result may be left out: then a fixed text stands in its
//! place, under the same id, and it stays left out (R-65). And a summary may take the place of the oldest part: then the
//! model was asked for one right before, the summary is marked as the host's, and all that comes after it is the rest of
//! what was there, as it was (R-70).

use serde_json::Value;

use super::{Provider, Request, anthropic, openai, responses};

/// How a note of the host begins, which is for one request only (R-78).
pub(super) const NOTE: &str = "[A note of the host, not a message of the user]";
/// How a summary begins and ends, and what stands for a result that was left out.
const SUMMARY: &str = "[Context from the host, not a message of the user: ";
const END_OF_SUMMARY: &str = "\n\n[End of the summary.]";
pub(super) const PLACEHOLDER: &str = cofferdam::conversation::PLACEHOLDER;
/// How the system prompt of a request for a summary begins.
const SUMMARISER: &str = "You summarise the work of a coding agent";

/// A piece of the history, whatever its format.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Text on the user's side.
    User(String),
    /// A result: all of it but its text, and whether it was left out.
    Result { whole: Value, frame: Value, is_left_out: bool },
    /// Anything else.
    Other(Value),
}

/// Whether each request begins with all that the one before it held, under the same system prompt and with the same tools.
pub(super) fn check(requests: &[Request]) -> Result<(), String> {
    let mut earlier: Option<(usize, &Request)> = None;
    let mut was_summarised = false;
    for (at, later) in requests.iter().enumerate() {
        if later.system().starts_with(SUMMARISER) {
            was_summarised = true;
            continue;
        }
        if let Some((before, request)) = earlier {
            let places = format!("request {} does not follow from request {}", at + 1, before + 1);
            compare(&pieces(request), &pieces(later), was_summarised)
                .map_err(|problem| format!("{places}: {problem}\n{:#}\n{:#}", later.body, request.body))?;
            // Each request of the user has a system prompt of its own, which tells the mode (R-93); within one it stays.
            let begins_anew = matches!(pieces(later).last(), Some(Piece::User(_)));
            if (request.system() != later.system() && !begins_anew) || request.tools() != later.tools() {
                return Err(format!("request {} has another system prompt or other tools than request {}", at + 1, before + 1));
            }
        }
        earlier = Some((at, later));
        was_summarised = false;
    }
    Ok(())
}

fn pieces(request: &Request) -> Vec<Piece> {
    match request.provider {
        Provider::OpenAi => openai::pieces_of_history(&request.body),
        Provider::Anthropic => anthropic::pieces_of_history(&request.body),
        Provider::Responses => responses::pieces_of_history(&request.body),
    }
}

fn compare(earlier: &[Piece], later: &[Piece], was_summarised: bool) -> Result<(), String> {
    let (before, now) = (summary(earlier), summary(later));
    if before == now {
        return begins_with(later, earlier);
    }
    let Some(Piece::User(first)) = later.first().filter(|_| now.is_some()) else { return Err("the summary is gone".into()) };
    if !was_summarised {
        return Err("there is a new summary, and nobody asked for it".into());
    }
    // After the summary stands the prompt under which the rest was said, or the next one.
    let prompt = first.split_once(END_OF_SUMMARY).map(|(_, prompt)| prompt.trim_start_matches('\n')).unwrap_or_default();
    let rest = if prompt.is_empty() { &later[1..] } else { later };
    let is_prompt = |piece: &Piece, rest: &[Piece]| match (piece, rest.first()) {
        (Piece::User(a), Some(Piece::User(b))) => b.ends_with(a.as_str()) || a.ends_with(b.as_str()),
        _ => false,
    };
    let fresh = |tail: &[Piece]| {
        // What is new begins with a new response, and nothing of what was there comes back as new.
        !matches!(tail.first(), Some(Piece::Result { .. }))
            && !tail.iter().any(|piece| matches!(piece, Piece::Other(_)) && earlier.contains(piece))
    };
    let said = rest.get(1..).unwrap_or_default();
    let is_rest = |kept: &[Piece]| begins_with(said, kept).is_ok() && fresh(&said[kept.len()..]);
    // Cut before a prompt, within an exchange, or after everything; never between a call and its result.
    let follows = (0..=earlier.len()).filter(|cut| !matches!(earlier.get(*cut), Some(Piece::Result { .. }))).any(|cut| {
        let kept = &earlier[cut..];
        let prompt_before = earlier[..cut].iter().rev().find(|piece| matches!(piece, Piece::User(_)));
        let whole = kept.first().is_some_and(|piece| is_prompt(piece, rest)) && is_rest(&kept[1..]);
        let within = prompt_before.is_some_and(|piece| is_prompt(piece, rest)) && is_rest(kept);
        let after = kept.is_empty() && matches!(rest.first(), Some(Piece::User(_))) && is_rest(&[]);
        whole || within || after
    });
    if follows { Ok(()) } else { Err("what comes after the summary is not the rest of what was there".into()) }
}

/// The summary, if there is one.
fn summary(pieces: &[Piece]) -> Option<&str> {
    match pieces.first()? {
        Piece::User(text) if text.starts_with(SUMMARY) => text.split_once(END_OF_SUMMARY).map(|(summary, _)| summary),
        Piece::User(_) | Piece::Result { .. } | Piece::Other(_) => None,
    }
}

fn begins_with(later: &[Piece], earlier: &[Piece]) -> Result<(), String> {
    if later.len() < earlier.len() {
        return Err(format!("{} pieces became {}", earlier.len(), later.len()));
    }
    let same = |(a, b): (&Piece, &Piece)| match (a, b) {
        (Piece::Result { frame: a, .. }, Piece::Result { frame: b, is_left_out: true, .. }) => a == b,
        _ => a == b,
    };
    match earlier.iter().zip(later).position(|pair| !same(pair)) {
        Some(at) => Err(format!("piece {} changed: {:#?} became {:#?}", at + 1, earlier[at], later[at])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(messages: Value) -> Request {
        Request { provider: Provider::OpenAi, path: String::new(), headers: Vec::new(), body: json!({"messages": messages}) }
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
        let first = asked(json!([user("a")]));
        let grown = asked(json!([user("a"), {"role": "assistant", "content": "b"}]));
        let other = asked(json!([user("A"), {"role": "assistant", "content": "b"}]));
        assert!(check(&[first.clone(), grown.clone()]).is_ok());
        assert!(check(&[first, other]).is_err());
        assert!(check(&[grown, asked(json!([]))]).is_err());
    }

    #[test]
    fn r078_a_note_is_no_history() {
        let noted = asked(json!([user(&format!("a\n\n{NOTE}\nGo on."))]));
        assert!(check(&[noted, asked(json!([user("a")]))]).is_ok());
        let alone = asked(json!([user("a"), called("b"), result("r"), user(&format!("{NOTE}\nGo on."))]));
        assert!(check(&[alone, asked(json!([user("a"), called("b"), result("r")]))]).is_ok());
    }

    #[test]
    fn r065_a_result_may_be_left_out_and_does_not_come_back() {
        let whole = asked(json!([user("a"), called("b"), result("long")]));
        let left_out = asked(json!([user("a"), called("b"), result(PLACEHOLDER)]));
        let changed = asked(json!([user("a"), called("b"), result("other")]));
        assert!(check(&[whole.clone(), left_out.clone()]).is_ok());
        assert!(check(&[left_out, whole.clone()]).is_err());
        assert!(check(&[whole, changed]).is_err());
    }

    #[test]
    fn r070_a_summary_takes_the_place_of_the_oldest_part_and_of_nothing_else() {
        let summary = |words: &str, rest: &str| user(&format!("{SUMMARY}]\n\n{words}{END_OF_SUMMARY}{rest}"));
        let asked_for_it = asked(json!([{"role": "system", "content": SUMMARISER}, user("Summarise.")]));
        let before = asked(json!([user("a"), called("b"), result("r"), called("c"), result("s")]));
        let good = [
            json!([summary("S", "\n\na"), called("c"), result("s"), called("d"), result("t")]),
            json!([summary("S", "\n\na"), called("c"), result("s")]),
            json!([summary("S", "\n\na")]),
        ];
        for later in good {
            assert_eq!(check(&[before.clone(), asked_for_it.clone(), asked(later.clone())]), Ok(()));
            assert!(check(&[before.clone(), asked(later)]).is_err(), "nobody asked for it");
        }
        let bad = [
            json!([summary("S", "\n\na"), result("s")]),
            json!([summary("S", "\n\nx"), called("c"), result("s")]),
            json!([summary("S", "\n\na"), called("c"), result("changed")]),
        ];
        for later in bad {
            assert!(check(&[before.clone(), asked_for_it.clone(), asked(later.clone())]).is_err(), "{later}");
        }
    }
}
