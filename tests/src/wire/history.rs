//! One request after the other: nothing that was said is lost or changed.

use super::{Provider, Request, anthropic, openai};

/// The host's remark after an empty response, which is for one request only.
const NOTE: &str = "Your last response was empty. Go on with the task, or give your final answer.";

/// Whether each request begins with all that the one before it held, under the same system prompt and with the same tools.
pub(super) fn check(requests: &[Request]) -> Result<(), String> {
    let pieces = |request: &Request| match request.provider {
        Provider::OpenAi => openai::pieces_of_history(&request.body, NOTE),
        Provider::Anthropic => anthropic::pieces_of_history(&request.body, NOTE),
    };
    for (number, pair) in requests.windows(2).enumerate() {
        let (earlier, later) = (pieces(&pair[0]), pieces(&pair[1]));
        if !later.starts_with(&earlier) {
            return Err(format!("request {} does not begin with request {}:\n{later:#?}\n{earlier:#?}", number + 2, number + 1));
        }
        if pair[0].system() != pair[1].system() || pair[0].tools() != pair[1].tools() {
            return Err(format!("request {} has another system prompt or other tools than the one before", number + 2));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(messages: Value) -> Request {
        Request { provider: Provider::OpenAi, path: String::new(), headers: Vec::new(), body: json!({"messages": messages}) }
    }

    #[test]
    fn r009_a_history_that_changed_is_found() {
        let first = asked(json!([{"role": "user", "content": "a"}]));
        let grown = asked(json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]));
        let other = asked(json!([{"role": "user", "content": "A"}, {"role": "assistant", "content": "b"}]));
        assert!(check(&[first.clone(), grown.clone()]).is_ok());
        assert!(check(&[first, other]).is_err());
        assert!(check(&[grown.clone(), asked(json!([]))]).is_err());
    }

    #[test]
    fn r078_a_note_is_no_history() {
        let noted = asked(json!([{"role": "user", "content": format!("a\n\n{NOTE}")}]));
        assert!(check(&[noted, asked(json!([{"role": "user", "content": "a"}]))]).is_ok());
    }
}
