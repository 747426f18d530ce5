//! What the policy leaves of choices that are made on the command line, in the environment, in the configuration, and by a
//! session that is resumed.

use crate::agent::ports::Model;
use crate::model::{self, ModelSpec};
use crate::policy::{ModelEndpoint, Place, Policy};

use super::args::SessionChoice;
use super::error::CliError;

/// The model, if the policy allows it where it is.
pub(super) fn open_model(policy: &Policy, spec: &ModelSpec, settings: &model::Settings) -> Result<Box<dyn Model>, CliError> {
    check_model(policy, spec, settings)?;
    Ok(model::connect(spec, settings)?)
}

/// An error unless the policy allows a model where it is.
pub(super) fn check_model(policy: &Policy, spec: &ModelSpec, settings: &model::Settings) -> Result<(), CliError> {
    let (base_url, is_own) = model::base_url(spec, settings);
    let endpoint = ModelEndpoint { provider: spec.provider.name(), base_url: base_url.as_deref(), is_own };
    match policy.forbids_model(&endpoint) {
        Some(refusal) => Err(CliError::configuration(refusal.to_string())),
        None => Ok(()),
    }
}

/// The choice of a session under the policy. What was asked for on the command line and is not to be had is an error.
pub(super) fn session_choice(policy: &Policy, choice: &SessionChoice) -> Result<SessionChoice, CliError> {
    match (policy.forbids_session(), policy.requires_session()) {
        (Some(forbidden), Some(required)) => Err(CliError::configuration(format!(
            "{forbidden}: sessions may not be kept, and {required} has every request recorded in one, so nothing runs\n\
             hint: one of the two rules has to change"
        ))),
        (Some(place), None) if choice.newest || choice.resume.is_some() => Err(not_kept(place, "a session cannot be resumed")),
        (Some(_), None) => Ok(SessionChoice { no_session: true, ..choice.clone() }),
        (None, Some(place)) if choice.no_session => Err(CliError::configuration(format!(
            "{place}: the policy has every request recorded in a session, so --no-session is not allowed\n\
             hint: leave out --no-session, or ask whoever wrote the policy"
        ))),
        (None, Some(_) | None) => Ok(choice.clone()),
    }
}

/// An error where sessions may not be kept, for something that would keep what was said.
pub(super) fn check_keeping(policy: &Policy, what: &str) -> Result<(), CliError> {
    policy.forbids_session().map_or(Ok(()), |place| Err(not_kept(place, what)))
}

/// The error for a session that has to be recorded and cannot be.
pub(super) fn not_recorded(policy: &Policy, problem: &str) -> Option<CliError> {
    let place = policy.requires_session()?;
    Some(CliError::configuration(format!(
        "{place}: the policy has every request recorded in a session, and this one cannot be: {problem}\n\
         hint: make room for it, or start again"
    )))
}

fn not_kept(place: &Place, what: &str) -> CliError {
    CliError::configuration(format!("{place}: the policy does not let sessions be kept, so {what}\nhint: ask whoever wrote the policy"))
}
