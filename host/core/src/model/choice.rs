//! Chooses the model, by name or by what is available.

use std::fmt;
use std::str::FromStr;

use super::api_key::ApiKey;
use super::connect::OLLAMA_URL;
use super::providers;
use super::recording::RecordingError;
use super::timing::RetryTiming;
use crate::terminal_escape;

/// The provider of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProviderKind {
    /// OpenAI, or any server that implements its chat completions.
    OpenAi,
    /// Anthropic, the provider of the Claude models.
    Anthropic,
    /// An Ollama server, by default on this machine.
    Ollama,
    /// A file with recorded responses.
    Replay,
}

impl ProviderKind {
    /// Returns the provider's name before the colon of a model name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::Replay => "replay",
        }
    }
}

/// The API of OpenAI, or of a compatible server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenAiApi {
    /// Chat completions, which every compatible server implements.
    ChatCompletions,
    /// The Responses API, which OpenAI's newest models require for tools.
    Responses,
}

/// Returns the default model of a provider, if it has one.
fn default_model(provider: ProviderKind) -> Option<&'static str> {
    match provider {
        ProviderKind::OpenAi => Some("gpt-6-sol"),
        ProviderKind::Anthropic => Some("claude-sonnet-5-5"),
        ProviderKind::Ollama | ProviderKind::Replay => None,
    }
}

/// A model with its provider.
///
/// Parsed from `openai:gpt-4.1`, `anthropic:claude-sonnet-5-5`, `ollama:qwen3:8b`, `replay:FILE`,
/// or a plain model name whose prefix identifies the provider. A provider alone means its default
/// model.
///
/// ```
/// use cofferdam::model::ModelSpec;
///
/// let spec: ModelSpec = "claude-haiku-4-5".parse()?;
/// assert_eq!(spec.to_string(), "anthropic:claude-haiku-4-5");
/// # Ok::<(), cofferdam::model::ModelChoiceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelSpec {
    /// The provider of the model.
    pub provider: ProviderKind,
    /// The name that the provider uses, or the file of a replay.
    pub model: String,
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider.name(), self.model)
    }
}

impl FromStr for ModelSpec {
    type Err = ModelChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let named = [
            ProviderKind::OpenAi,
            ProviderKind::Anthropic,
            ProviderKind::Ollama,
            ProviderKind::Replay,
        ]
        .into_iter()
        .find(|p| p.name() == word);
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
        let (provider, model) = match named {
            Some(provider) => (provider, rest),
            None if begins(&["gpt-", "chatgpt-", "o1", "o3", "o4"]) => (ProviderKind::OpenAi, text),
            None if begins(&["claude-"]) => (ProviderKind::Anthropic, text),
            None => return Err(ModelChoiceError::Unknown(terminal_escape::escape_line(text, 80))),
        };
        let model = match model.trim() {
            "" => {
                default_model(provider).ok_or(ModelChoiceError::NoDefaultModel(provider.name()))?
            }
            model => model,
        };
        Ok(Self { provider, model: model.to_owned() })
    }
}

/// The user's settings for models: keys, addresses and limits.
///
/// They come from the environment and the configuration.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModelSettings {
    /// The base URL of the API, if it is not the provider's own.
    pub base_url: Option<String>,
    /// The key for OpenAI and compatible servers.
    pub openai_key: Option<ApiKey>,
    /// The key for Anthropic.
    pub anthropic_key: Option<ApiKey>,
    /// The context window in tokens, which overrides the known one.
    pub context_window: Option<u64>,
    /// The most tokens of a response.
    pub max_output: Option<u64>,
    /// The reasoning effort in the provider's words, for OpenAI and compatible servers.
    pub reasoning_effort: Option<String>,
    /// The API of OpenAI and compatible servers, which overrides the known one.
    pub api: Option<OpenAiApi>,
    /// Whether a key may be sent unencrypted to another machine.
    pub allow_plain_http: bool,
    /// The timeouts and retries of requests.
    pub timing: RetryTiming,
}

impl ModelSettings {
    /// Reads `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` and `COFFERDAM_BASE_URL`.
    ///
    /// All other settings come from the configuration.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let key = |name: &str| env(name).and_then(|value| ApiKey::new(&value));
        Self {
            base_url: env("COFFERDAM_BASE_URL").filter(|url| !url.trim().is_empty()),
            openai_key: key("OPENAI_API_KEY"),
            anthropic_key: key("ANTHROPIC_API_KEY"),
            ..Self::default()
        }
    }

    /// Returns all keys, for callers that redact them.
    pub fn secrets(&self) -> Vec<ApiKey> {
        self.openai_key.iter().chain(&self.anthropic_key).cloned().collect()
    }
}

/// A chosen model, with a notice about the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelChoice {
    /// The chosen model and its provider.
    pub spec: ModelSpec,
    /// One sentence about the choice, if the user did not name the model.
    pub notice: Option<String>,
}

/// An error when choosing or connecting to a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelChoiceError {
    /// The name does not identify a provider.
    #[error("unknown model `{0}`\nhint: add the provider: openai:{0}, anthropic:{0} or ollama:{0}")]
    Unknown(String),
    /// The provider has no default model.
    #[error("no model is selected for {0}\nhint: write {0}:NAME")]
    NoDefaultModel(&'static str),
    /// No model is named and none is available.
    #[error(
        "no language model is set up\nhint: use one of these:\n\
         \x20 export ANTHROPIC_API_KEY=…      then run again\n\
         \x20 export OPENAI_API_KEY=…         then run again\n\
         \x20 ollama pull qwen3-coder         a local model, found automatically while \
         Ollama runs\n\
         \x20 --model openai:NAME with COFFERDAM_BASE_URL=http://…/v1    any server with an \
         OpenAI-compatible API\n\
         \x20 cofferdam demo                  a recorded conversation, without a model"
    )]
    NoModelFound,
    /// A base URL is set without a model.
    ///
    /// The URL does not identify the provider, and a key must not be sent to the wrong one.
    #[error(
        "a base URL is set ({0}), but no model is selected\nhint: select a model with its \
            provider, for example --model openai:NAME"
    )]
    BaseUrlWithoutModel(String),
    /// The provider requires a key.
    #[error("{provider} requires a key\nhint: set {variable}")]
    NoKey {
        /// The name of the provider.
        provider: &'static str,
        /// The environment variable for the key.
        variable: &'static str,
    },
    /// The key contains characters that no key has.
    #[error(
        "invalid key in {0}: it contains characters that keys do not have, such as line breaks \
        or typographic quotes"
    )]
    InvalidKey(&'static str),
    /// The base URL is not usable.
    #[error("invalid base URL `{url}`: {problem}")]
    InvalidBaseUrl {
        /// The URL as it was given.
        url: String,
        /// The reason why it is not usable.
        problem: String,
    },
    /// The key would be sent unencrypted.
    #[error(
        "the key would be sent to {0} unencrypted\nhint: use https, or set `allow_plain_http = \
            true` under [provider] in the configuration"
    )]
    PlainHttp(String),
    /// The HTTP client cannot be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The program has no clients of providers, because the feature `providers` is disabled.
    #[error("cannot connect to {0}: this program was built without the clients of model providers")]
    NoProviders(&'static str),
    /// The recording cannot be read.
    #[error("cannot read the recording `{path}`: {source}")]
    UnreadableRecording {
        /// The path of the recording.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a valid recording.
    #[error("cannot play the recording `{path}`: {source}")]
    InvalidRecording {
        /// The path of the recording.
        path: String,
        /// The error in the recording.
        source: RecordingError,
    },
}

/// Chooses the model with this name, or an available one.
///
/// Without a name, a provider whose key is set is chosen, or else a model of a local Ollama server.
/// If a base URL is set, only an Ollama server at that address is considered.
///
/// # Errors
///
/// Returns an error if the name does not identify a model, or if no model is available.
pub async fn choose(
    named: Option<&str>,
    settings: &ModelSettings,
) -> Result<ModelChoice, ModelChoiceError> {
    choose_with(named, settings, OLLAMA_URL).await
}

async fn choose_with(
    named: Option<&str>,
    settings: &ModelSettings,
    ollama_address: &str,
) -> Result<ModelChoice, ModelChoiceError> {
    if let Some(name) = named.filter(|name| !name.trim().is_empty()) {
        return Ok(ModelChoice { spec: name.parse()?, notice: None });
    }
    if let Some(base) = &settings.base_url {
        let address = base.trim().trim_end_matches('/').trim_end_matches("/v1");
        let no_model =
            || ModelChoiceError::BaseUrlWithoutModel(terminal_escape::escape_line(base, 200));
        return choose_ollama(
            providers::find_ollama_model(address).await.ok_or_else(no_model)?,
            "at the base URL",
        );
    }
    let default =
        |provider: ProviderKind| -> Result<ModelSpec, ModelChoiceError> { provider.name().parse() };
    match (&settings.anthropic_key, &settings.openai_key) {
        (Some(_), Some(_)) => {
            let spec = default(ProviderKind::Anthropic)?;
            let notice = format!(
                "ANTHROPIC_API_KEY and OPENAI_API_KEY are both set; using {spec}. Choose another \
                    model with --model."
            );
            Ok(ModelChoice { spec, notice: Some(notice) })
        }
        (Some(_), None) => {
            Ok(ModelChoice { spec: default(ProviderKind::Anthropic)?, notice: None })
        }
        (None, Some(_)) => Ok(ModelChoice { spec: default(ProviderKind::OpenAi)?, notice: None }),
        (None, None) => {
            let model = providers::find_ollama_model(ollama_address)
                .await
                .ok_or(ModelChoiceError::NoModelFound)?;
            choose_ollama(model, "on this machine; no key is set")
        }
    }
}

fn choose_ollama(model: String, location: &str) -> Result<ModelChoice, ModelChoiceError> {
    let spec = ModelSpec { provider: ProviderKind::Ollama, model };
    let notice = format!(
        "Using {spec} from the Ollama server {location}. Choose another model with --model."
    );
    Ok(ModelChoice { spec, notice: Some(notice) })
}

#[cfg(test)]
mod tests;
