//! Which model answers: what was said on the command line, then whom the session was held with,
//! then what is set up.

use std::path::Path;
use std::sync::Arc;

use super::args::ModelArgs;
use super::context::{AppContext, model_settings};
use super::error::CliError;
use super::policy_checks::open_model;
use super::print::eprint_line;
use crate::agent::ports::LanguageModel;
use crate::model::{self, ModelSpec, ProviderKind};
use crate::session::ModelIdentity;
use crate::terminal_escape;

/// The model for a request, or for those of a conversation. What was said to one is sent to no
/// other without a word: a session goes on where it was held, unless the command line says
/// otherwise.
pub(super) async fn connect(
    parts: &AppContext,
    said: &ModelArgs,
    held_with: Option<&ModelIdentity>,
    record: Option<&Path>,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let mut settings = model_settings(&parts.settings);
    // A recording was played, and is over.
    let held_with = held_with.filter(|held_with| held_with.provider != ProviderKind::Replay.name());
    let named = resumed_model(said, held_with, &mut settings.base_url)?
        .or_else(|| parts.settings.model.clone());
    let of_session = |problem: CliError| match held_with {
        Some(held_with) if said.model.is_none() => problem.with_detail(&format!(
            "The session was held with {held_with}; name another with --model."
        )),
        Some(_) | None => problem,
    };
    let choice = model::choose(named.as_deref(), &settings)
        .await
        .map_err(|problem| of_session(problem.into()))?;
    let is_of_session = said.model.is_none() && held_with.is_some();
    let set_up = parts.settings.model.as_deref().and_then(|name| name.parse::<ModelSpec>().ok());
    let passed_over = set_up.filter(|set_up| is_of_session && *set_up != choice.spec);
    let passed_over = passed_over.map(|_| {
        format!("the session goes on with {}, as before. Name another with --model.", choice.spec)
    });
    for remark in choice.notice.iter().chain(&passed_over) {
        eprint_line(&terminal_escape::escape_line(remark, 400));
    }
    let model = open_model(parts.catalog.policy(), &choice.spec, &settings).map_err(of_session)?;
    Ok(match record {
        Some(path) => Arc::new(model::RecordingModel::create(model, path, parts.secrets.clone())?),
        None => model.into(),
    })
}

/// The name of the model that a session goes on with, and its address; an address belongs to one
/// provider.
fn resumed_model(
    said: &ModelArgs,
    held_with: Option<&ModelIdentity>,
    address: &mut Option<String>,
) -> Result<Option<String>, CliError> {
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
pub(super) fn model_change_notice(
    held_with: Option<&ModelIdentity>,
    model: &dyn LanguageModel,
) -> Option<String> {
    let now = ModelIdentity::from(model.info());
    let before = held_with.filter(|before| !before.is_same_endpoint(&now))?;
    Some(terminal_escape::escape_line(
        &format!("This session was held with {before}; all of it goes to {now} from now on."),
        600,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_on_where_it_was_held_unless_somebody_says_otherwise() {
        const HERE: &str = "http://localhost:8000/v1";
        const SET_UP: &str = "https://gpu.example/v1";
        let held_with = |address: Option<&str>| ModelIdentity {
            provider: "openai".into(),
            model: "local".into(),
            address: address.map(str::to_owned),
        };
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
            let said = ModelArgs {
                model: model.map(str::to_owned),
                base_url: base_url.map(str::to_owned),
            };
            let mut address = Some(base_url.unwrap_or(SET_UP).to_owned());
            let named = resumed_model(&said, Some(held_with), &mut address).expect("a model");
            assert_eq!((named.as_deref(), address.as_deref()), (expected, at), "{said:?}");
        }
    }
}
