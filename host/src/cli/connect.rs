//! Which model answers: what was said on the command line, then whom the session was held with, then what is set up.

use std::path::Path;
use std::sync::Arc;

use super::args::ModelArgs;
use super::assemble::{Parts, model_settings};
use super::bounds::open_model;
use super::error::CliError;
use super::print::stderr_line;
use crate::agent::ports::Model;
use crate::model::{self, ModelSpec, Provider};
use crate::session::HeldWith;
use crate::shown;

/// The model for a request, or for those of a conversation. What was said to one is sent to no other without a word: a session
/// goes on where it was held, unless the command line says otherwise.
pub(super) async fn connect(
    parts: &Parts,
    said: &ModelArgs,
    held_with: Option<&HeldWith>,
    record: Option<&Path>,
) -> Result<Arc<dyn Model>, CliError> {
    let mut settings = model_settings(&parts.settings);
    // A recording was played, and is over.
    let held_with = held_with.filter(|held_with| held_with.provider != Provider::Replay.name());
    let named = goes_on(said, held_with, &mut settings.base_url)?.or_else(|| parts.settings.model.clone());
    let of_session = |problem: CliError| match held_with {
        Some(held_with) if said.model.is_none() => {
            problem.and(&format!("The session was held with {held_with}; name another with --model."))
        }
        Some(_) | None => problem,
    };
    let choice = model::choose(named.as_deref(), &settings).await.map_err(|problem| of_session(problem.into()))?;
    let is_of_session = said.model.is_none() && held_with.is_some();
    let set_up = parts.settings.model.as_deref().and_then(|name| name.parse::<ModelSpec>().ok());
    let passed_over = set_up.filter(|set_up| is_of_session && *set_up != choice.spec);
    let passed_over = passed_over.map(|_| format!("the session goes on with {}, as before. Name another with --model.", choice.spec));
    for remark in choice.remark.iter().chain(&passed_over) {
        stderr_line(&shown::line(remark, 400));
    }
    let model = open_model(parts.catalog.policy(), &choice.spec, &settings).map_err(of_session)?;
    Ok(match record {
        Some(path) => Arc::new(model::Recorder::create(model, path, parts.secrets.clone())?),
        None => model.into(),
    })
}

/// The name of the model that a session goes on with, and its address; an address belongs to one provider.
fn goes_on(said: &ModelArgs, held_with: Option<&HeldWith>, address: &mut Option<String>) -> Result<Option<String>, CliError> {
    let Some(held_with) = held_with else { return Ok(None) };
    let provider = match &said.model {
        Some(name) => name.parse::<ModelSpec>()?.provider.name(),
        None => held_with.provider.as_str(),
    };
    if said.base_url.is_none() && provider == held_with.provider {
        address.clone_from(&held_with.address);
    }
    Ok(said.model.is_none().then(|| format!("{}:{}", held_with.provider, held_with.model)))
}

/// What the user should know before anything of a session is sent to somebody else.
pub(super) fn elsewhere(held_with: Option<&HeldWith>, model: &dyn Model) -> Option<String> {
    let now = HeldWith::from(model.info());
    let before = held_with.filter(|before| !before.is_where(&now))?;
    Some(shown::line(&format!("This session was held with {before}; all of it goes to {now} from now on."), 600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_on_where_it_was_held_unless_somebody_says_otherwise() {
        const HERE: &str = "http://localhost:8000/v1";
        const SET_UP: &str = "https://gpu.example/v1";
        let held_with =
            |address: Option<&str>| HeldWith { provider: "openai".into(), model: "local".into(), address: address.map(str::to_owned) };
        let (here, own) = (held_with(Some(HERE)), held_with(None));
        let table = [
            (None, None, &here, Some("openai:local"), Some(HERE)),
            (None, None, &own, Some("openai:local"), None),
            (Some("openai:other"), None, &here, None, Some(HERE)),
            (Some("claude-x"), None, &here, None, Some(SET_UP)),
            (None, Some("http://other/v1"), &here, Some("openai:local"), Some("http://other/v1")),
            (Some("openai:other"), Some("http://other/v1"), &here, None, Some("http://other/v1")),
        ];
        for (model, base_url, held_with, expected, at) in table {
            let said = ModelArgs { model: model.map(str::to_owned), base_url: base_url.map(str::to_owned) };
            let mut address = Some(base_url.unwrap_or(SET_UP).to_owned());
            let named = goes_on(&said, Some(held_with), &mut address).expect("a model");
            assert_eq!((named.as_deref(), address.as_deref()), (expected, at), "{said:?}");
        }
    }
}
