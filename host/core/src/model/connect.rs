//! Connects to the chosen model.

use std::fs::File;
use std::io::{self, Read as _};

use super::choice::{ModelChoiceError, ModelSettings, ModelSpec, ProviderKind};
use super::{ReplayModel, providers};
use crate::agent::ports::LanguageModel;
use crate::terminal_escape;

/// The base URLs of the providers' own APIs.
pub(super) const OPENAI_URL: &str = "https://api.openai.com/v1";
pub(super) const ANTHROPIC_URL: &str = "https://api.anthropic.com";
/// The default address of an Ollama server.
pub(super) const OLLAMA_URL: &str = "http://127.0.0.1:11434";
/// The largest recording that can be played, in bytes.
const MAX_RECORDING_BYTES: u64 = 64 << 20;

/// Creates the client of a model.
///
/// Nothing is sent yet. A recording is read completely.
///
/// # Errors
///
/// Returns an error if a required key is missing or unusable, if the base URL is invalid, if a key
/// would be sent over plain HTTP to another machine, or if the recording cannot be read.
/// Without the feature `providers`, only recordings can be used.
pub fn connect(
    spec: &ModelSpec,
    settings: &ModelSettings,
) -> Result<Box<dyn LanguageModel>, ModelChoiceError> {
    match spec.provider {
        ProviderKind::OpenAi => providers::connect_openai(spec, settings),
        ProviderKind::Ollama => providers::connect_ollama(spec, settings),
        ProviderKind::Anthropic => providers::connect_anthropic(spec, settings),
        ProviderKind::Replay => Ok(Box::new(open_replay(spec)?)),
    }
}

/// Returns the base URL for a model, and whether it is the provider's own.
///
/// The URL is `None` for a recording.
pub fn base_url(spec: &ModelSpec, settings: &ModelSettings) -> (Option<String>, bool) {
    let own = default_address(spec.provider);
    let address = other_address(spec, settings);
    let is_own = address.is_none();
    (own.map(|own| address.unwrap_or_else(|| own.to_owned())), is_own)
}

/// Returns the base URL of a provider's own API by the name of the provider, or `None` for an
/// unknown name and for recordings.
pub(crate) fn default_base_url(provider: &str) -> Option<&'static str> {
    let all = [ProviderKind::OpenAi, ProviderKind::Anthropic, ProviderKind::Ollama];
    all.into_iter().find(|kind| kind.name() == provider).and_then(default_address)
}

fn default_address(provider: ProviderKind) -> Option<&'static str> {
    match provider {
        ProviderKind::OpenAi => Some(OPENAI_URL),
        ProviderKind::Anthropic => Some(ANTHROPIC_URL),
        ProviderKind::Ollama => Some(OLLAMA_URL),
        ProviderKind::Replay => None,
    }
}

/// Returns the configured base URL, unless it is the provider's own.
pub(super) fn other_address(spec: &ModelSpec, settings: &ModelSettings) -> Option<String> {
    let own = default_address(spec.provider);
    let plain = |address: &str| address.trim_end_matches('/').trim_end_matches("/v1").to_owned();
    settings
        .base_url
        .as_deref()
        .map(str::trim)
        .filter(|url| Some(plain(url)) != own.map(plain))
        .map(str::to_owned)
}

fn open_replay(spec: &ModelSpec) -> Result<ReplayModel, ModelChoiceError> {
    let path = terminal_escape::escape_line(&spec.model, 400);
    let text = read_recording(&spec.model)
        .map_err(|source| ModelChoiceError::UnreadableRecording { path: path.clone(), source })?;
    ReplayModel::parse(&text).map_err(|source| ModelChoiceError::InvalidRecording { path, source })
}

/// Reads a recording into memory.
fn read_recording(path: &str) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(MAX_RECORDING_BYTES + 1).read_to_string(&mut text)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > MAX_RECORDING_BYTES {
        return Err(io::Error::other(format!(
            "it is larger than {} MiB",
            MAX_RECORDING_BYTES >> 20
        )));
    }
    Ok(text)
}
