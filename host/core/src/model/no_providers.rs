//! In place of the clients of model providers, if the feature `providers` is disabled.

use super::{ModelChoiceError, ModelSettings, ModelSpec};
use crate::agent::ports::LanguageModel;

type NoModel = Result<Box<dyn LanguageModel>, ModelChoiceError>;

pub(super) fn connect_openai(spec: &ModelSpec, _: &ModelSettings) -> NoModel {
    Err(ModelChoiceError::NoProviders(spec.provider.name()))
}

pub(super) fn connect_ollama(spec: &ModelSpec, _: &ModelSettings) -> NoModel {
    Err(ModelChoiceError::NoProviders(spec.provider.name()))
}

pub(super) fn connect_anthropic(spec: &ModelSpec, _: &ModelSettings) -> NoModel {
    Err(ModelChoiceError::NoProviders(spec.provider.name()))
}

pub(super) async fn find_ollama_model(_: &str) -> Option<String> {
    None
}
