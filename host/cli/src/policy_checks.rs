//! Policy checks of choices made on the command line, in the environment, in the configuration, or
//! by a resumed session.

use cofferdam::HostError;
use cofferdam::agent::ports::LanguageModel;
use cofferdam::model::{self, ModelSpec};
use cofferdam::policy::{ModelEndpoint, Policy, SourceLocation};

use super::args::SessionChoice;
use super::error::CliError;

/// Opens a model after checking that the policy allows it and its address.
pub(super) fn open_model(
    policy: &Policy,
    spec: &ModelSpec,
    settings: &model::ModelSettings,
) -> Result<Box<dyn LanguageModel>, CliError> {
    check_model(policy, spec, settings)?;
    Ok(model::connect(spec, settings)?)
}

/// Checks that the policy allows a model and its address.
pub(super) fn check_model(
    policy: &Policy,
    spec: &ModelSpec,
    settings: &model::ModelSettings,
) -> Result<(), CliError> {
    let (base_url, is_own) = model::base_url(spec, settings);
    let endpoint = ModelEndpoint {
        provider: spec.provider.name(),
        base_url: base_url.as_deref(),
        is_default_address: is_own,
    };
    match policy.model_refusal(&endpoint) {
        Some(refusal) => Err(CliError::configuration(refusal.to_string())),
        None => Ok(()),
    }
}

/// Applies the policy to the choice of a session.
///
/// # Errors
///
/// If the policy denies what the command line requests.
pub(super) fn apply_session_policy(
    policy: &Policy,
    choice: SessionChoice,
) -> Result<SessionChoice, CliError> {
    match (policy.session_denied_by(), policy.session_required_by()) {
        (Some(forbidden), Some(required)) => Err(CliError::configuration(format!(
            "{forbidden}: sessions must not be saved, but {required} requires a saved session for \
                every request\nhint: change one of the two rules"
        ))),
        (Some(place), None) if choice.newest || choice.resume.is_some() => {
            Err(sessions_denied_error(place, "a session cannot be resumed"))
        }
        (Some(_), None) => Ok(SessionChoice { no_session: true, ..choice }),
        (None, Some(place)) if choice.no_session => Err(CliError::configuration(format!(
            "{place}: `--no-session` is not allowed: the policy requires a saved session for every \
                request\nhint: leave out `--no-session`, or ask the author of the policy"
        ))),
        (None, Some(_) | None) => Ok(choice),
    }
}

/// Checks that the policy allows saved conversations; `what` completes the error message.
pub(super) fn check_sessions_allowed(policy: &Policy, what: &str) -> Result<(), CliError> {
    policy.session_denied_by().map_or(Ok(()), |place| Err(sessions_denied_error(place, what)))
}

/// Returns an error if the policy requires a session record, which `problem` prevents.
pub(super) fn session_required_error(policy: &Policy, problem: &str) -> Option<CliError> {
    let location = policy.session_required_by()?.clone();
    Some(HostError::SessionRequired { location, problem: problem.to_owned() }.into())
}

fn sessions_denied_error(place: &SourceLocation, what: &str) -> CliError {
    CliError::configuration(format!(
        "{place}: the policy does not allow saved sessions, so {what}\nhint: ask the author of \
            the policy"
    ))
}
