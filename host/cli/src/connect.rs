//! Selection of the model: the command line first, then the resumed session, then the
//! configuration.

use std::path::Path;
use std::sync::Arc;

use super::args::ModelArgs;
use super::context::{AppContext, model_settings};
use super::error::CliError;
use super::policy_checks::open_model;
use super::print::eprint_line;
use cofferdam::agent::ports::LanguageModel;
use cofferdam::model::{self, ModelSpec, ProviderKind};
use cofferdam::session::ModelIdentity;
use cofferdam::terminal_escape;

/// Opens the model for a request or a chat.
///
/// A resumed session keeps its model and base URL unless the command line overrides them, so that
/// its content is not sent to another provider unnoticed. `record` is the file for a recording.
pub(super) async fn connect(
    context: &AppContext,
    flags: &ModelArgs,
    last_model: Option<&ModelIdentity>,
    record: Option<&Path>,
) -> Result<Arc<dyn LanguageModel>, CliError> {
    let mut settings = model_settings(&context.settings);
    // A replayed recording cannot be continued.
    let last_model =
        last_model.filter(|last_model| last_model.provider != ProviderKind::Replay.name());
    let named = resumed_model(flags, last_model, &mut settings.base_url)?
        .or_else(|| context.settings.model.clone());
    let name_session_model = |problem: CliError| match last_model {
        Some(last_model) if flags.model.is_none() => problem.with_detail(&format!(
            "hint: this session used {last_model}; choose another model with --model"
        )),
        Some(_) | None => problem,
    };
    let choice = model::choose(named.as_deref(), &settings)
        .await
        .map_err(|problem| name_session_model(problem.into()))?;
    let is_of_session = flags.model.is_none() && last_model.is_some();
    let configured =
        context.settings.model.as_deref().and_then(|name| name.parse::<ModelSpec>().ok());
    let unused = configured.filter(|configured| is_of_session && *configured != choice.spec);
    let unused = unused.map(|_| {
        format!(
            "this session continues with {}, as before; choose another model with --model",
            choice.spec
        )
    });
    for remark in choice.notice.iter().chain(&unused) {
        eprint_line(&terminal_escape::escape_line(remark, 400));
    }
    let model =
        open_model(context.policy(), &choice.spec, &settings).map_err(name_session_model)?;
    Ok(match record {
        Some(path) => {
            Arc::new(model::RecordingModel::create(model, path, context.secrets.clone())?)
        }
        None => model.into(),
    })
}

/// Returns the model of the resumed session, or `None` if the command line selects another one.
/// Sets `address` to that of the session if the provider stays the same.
fn resumed_model(
    flags: &ModelArgs,
    last_model: Option<&ModelIdentity>,
    address: &mut Option<String>,
) -> Result<Option<String>, CliError> {
    let Some(last_model) = last_model else { return Ok(None) };
    let provider = match &flags.model {
        Some(name) => name.parse::<ModelSpec>()?.provider.name(),
        None => last_model.provider.as_str(),
    };
    if flags.base_url.is_none() && provider == last_model.provider {
        address.clone_from(&last_model.address);
    }
    Ok(flags.model.is_none().then(|| format!("{}:{}", last_model.provider, last_model.model)))
}

/// Returns a notice if a session continues with another provider or base URL.
pub(super) fn model_change_notice(
    last_model: Option<&ModelIdentity>,
    model: &dyn LanguageModel,
) -> Option<String> {
    let now = ModelIdentity::from(model.info());
    let before = last_model.filter(|before| !before.is_same_endpoint(&now))?;
    Some(terminal_escape::escape_line(
        &format!(
            "this session used {before} before; its whole conversation will now be sent to {now}"
        ),
        600,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_session_keeps_its_model_unless_another_is_named() {
        const HERE: &str = "http://localhost:8000/v1";
        const SET_UP: &str = "https://gpu.example/v1";
        let last_model = |address: Option<&str>| ModelIdentity {
            provider: "openai".into(),
            model: "local".into(),
            address: address.map(str::to_owned),
        };
        let (here, own) = (last_model(Some(HERE)), last_model(None));
        let table = [
            (None, None, &here, Some("openai:local"), Some(HERE)),
            (None, None, &own, Some("openai:local"), None),
            (Some("openai:other"), None, &here, None, Some(HERE)),
            (Some("claude-x"), None, &here, None, Some(SET_UP)),
            (None, Some("http://other/v1"), &here, Some("openai:local"), Some("http://other/v1")),
            (Some("openai:other"), Some("http://other/v1"), &here, None, Some("http://other/v1")),
        ];
        for (model, base_url, last_model, expected, at) in table {
            let flags = ModelArgs {
                model: model.map(str::to_owned),
                base_url: base_url.map(str::to_owned),
            };
            let mut address = Some(base_url.unwrap_or(SET_UP).to_owned());
            let named = resumed_model(&flags, Some(last_model), &mut address).expect("a model");
            assert_eq!((named.as_deref(), address.as_deref()), (expected, at), "{flags:?}");
        }
    }
}
