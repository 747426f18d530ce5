//! Which model is meant: by name, or by what is there.

use std::fmt;
use std::str::FromStr;

use super::api_key::ApiKey;
use super::known_models;
use super::ollama;
use super::recording::RecordingError;
use super::retry::RetryTiming;
use crate::terminal_escape;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// OpenAI, or any server that speaks its chat completions.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// An Ollama server, by default on this machine.
    Ollama,
    /// A file with recorded responses.
    Replay,
}

impl ProviderKind {
    /// The word before the colon.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::Replay => "replay",
        }
    }
}

/// In which of its two formats OpenAI, or a server like it, is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenAiApi {
    /// What every server speaks.
    ChatCompletions,
    /// What OpenAI's newest models want for tools.
    Responses,
}

/// A model by name: `openai:gpt-4.1`, `anthropic:claude-sonnet-5-5`, `ollama:qwen3:8b`,
/// `replay:FILE`, or a plain name whose beginning tells the provider. A provider alone means its
/// default model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelSpec {
    /// Who answers.
    pub provider: ProviderKind,
    /// As the provider names it; for a replay, the file.
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
            "" => known_models::default_model(provider)
                .ok_or(ModelChoiceError::NoDefaultModel(provider.name()))?,
            model => model,
        };
        Ok(Self { provider, model: model.to_owned() })
    }
}

/// What the user has: keys, addresses, limits. Environment and configuration become this before
/// they come here.
#[derive(Clone, Debug, Default)]
pub struct ModelSettings {
    /// The address of the provider's API in place of its own.
    pub base_url: Option<String>,
    /// For OpenAI, and for servers that speak like it.
    pub openai_key: Option<ApiKey>,
    /// For Anthropic.
    pub anthropic_key: Option<ApiKey>,
    /// In place of what is known of the model.
    pub context_window: Option<u64>,
    /// How many tokens a response may have.
    pub max_output: Option<u64>,
    /// How hard to think, in the provider's words; for OpenAI, and for servers that speak like it.
    pub reasoning_effort: Option<String>,
    /// In which format they are spoken to, in place of what is known of the model.
    pub api: Option<OpenAiApi>,
    /// Whether a key may be sent unencrypted to another machine.
    pub allow_plain_http: bool,
    /// How long to wait for what.
    pub timing: RetryTiming,
}

impl ModelSettings {
    /// What the environment says: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `COFFERDAM_BASE_URL`. The
    /// rest is the configuration's.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let key = |name: &str| env(name).and_then(|value| ApiKey::new(&value));
        Self {
            base_url: env("COFFERDAM_BASE_URL").filter(|url| !url.trim().is_empty()),
            openai_key: key("OPENAI_API_KEY"),
            anthropic_key: key("ANTHROPIC_API_KEY"),
            ..Self::default()
        }
    }

    /// All keys, for whoever must take them out of something.
    pub fn secrets(&self) -> Vec<ApiKey> {
        self.openai_key.iter().chain(&self.anthropic_key).cloned().collect()
    }
}

/// A model, and what the user should know about how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model.
    pub spec: ModelSpec,
    /// One sentence, if the choice was not the user's own.
    pub notice: Option<String>,
}

/// No model could be chosen or made ready.
#[derive(Debug, thiserror::Error)]
pub enum ModelChoiceError {
    /// The name says nothing about a provider.
    #[error(
        "`{0}` is not the name of a model known here. Put its provider in front: openai:{0}, \
            anthropic:{0} or ollama:{0}"
    )]
    Unknown(String),
    /// The provider has no default.
    #[error("which one? Write {0}:NAME")]
    NoDefaultModel(&'static str),
    /// Nothing is named and nothing is there.
    #[error(
        "no language model is set up. Any of these will do:\n\
         \x20 export ANTHROPIC_API_KEY=…      then run again\n\
         \x20 export OPENAI_API_KEY=…         then run again\n\
         \x20 ollama pull qwen3-coder         a model on this machine, found by itself while \
         Ollama runs\n\
         \x20 --model openai:NAME with COFFERDAM_BASE_URL=http://…/v1    any server that speaks \
         chat completions\n\
         \x20 cofferdam demo                  a recorded conversation, without any model"
    )]
    NoModelFound,
    /// An address alone does not tell who answers there, and a key must not go to the wrong one.
    #[error(
        "a base URL is set ({0}), but no model is named. Name one with its provider, such as \
            --model openai:NAME"
    )]
    BaseUrlWithoutModel(String),
    /// The provider wants a key.
    #[error("{provider} needs a key: set {variable}")]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The environment variable.
        variable: &'static str,
    },
    /// The key cannot be a key.
    #[error("{0} holds characters that no key has, such as line breaks or quotes from a document")]
    InvalidKey(&'static str),
    /// The address is not one.
    #[error("the base URL `{url}` is not usable: {problem}")]
    InvalidBaseUrl {
        /// As given.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// The key would be readable on its way.
    #[error(
        "the key would travel to {0} unencrypted. Use https, or allow plain HTTP in the \
            configuration"
    )]
    PlainHttp(String),
    /// The HTTP client cannot start.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(#[from] reqwest::Error),
    /// The recording cannot be read.
    #[error("cannot read the recording {path}: {source}")]
    UnreadableRecording {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The recording is not one.
    #[error("{path}: {source}")]
    InvalidRecording {
        /// The file.
        path: String,
        /// Why.
        source: RecordingError,
    },
}

/// The model with this name. Without a name: the one whose key is set, else what a local Ollama
/// has. If an address is set, only an Ollama is looked for, and there.
pub async fn choose(
    named: Option<&str>,
    settings: &ModelSettings,
) -> Result<ModelChoice, ModelChoiceError> {
    choose_with(named, settings, ollama::DEFAULT_ADDRESS).await
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
        let alone =
            || ModelChoiceError::BaseUrlWithoutModel(terminal_escape::escape_line(base, 200));
        return choose_ollama(
            ollama::find_model(address).await.ok_or_else(alone)?,
            "at the base URL",
        );
    }
    let default =
        |provider: ProviderKind| -> Result<ModelSpec, ModelChoiceError> { provider.name().parse() };
    match (&settings.anthropic_key, &settings.openai_key) {
        (Some(_), Some(_)) => {
            let spec = default(ProviderKind::Anthropic)?;
            let remark = format!(
                "ANTHROPIC_API_KEY and OPENAI_API_KEY are both set; taking {spec}. Name another \
                    with --model."
            );
            Ok(ModelChoice { spec, notice: Some(remark) })
        }
        (Some(_), None) => {
            Ok(ModelChoice { spec: default(ProviderKind::Anthropic)?, notice: None })
        }
        (None, Some(_)) => Ok(ModelChoice { spec: default(ProviderKind::OpenAi)?, notice: None }),
        (None, None) => {
            let model =
                ollama::find_model(ollama_address).await.ok_or(ModelChoiceError::NoModelFound)?;
            choose_ollama(model, "on this machine; no key is set")
        }
    }
}

fn choose_ollama(model: String, place: &str) -> Result<ModelChoice, ModelChoiceError> {
    let spec = ModelSpec { provider: ProviderKind::Ollama, model };
    let remark = format!("taking {spec} from the Ollama {place}. Name another with --model.");
    Ok(ModelChoice { spec, notice: Some(remark) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::test_server::{RawAnswer, ScriptedModelServer};

    #[test]
    fn models_are_named_with_or_without_provider() {
        let cases = [
            ("openai:gpt-4.1", "openai:gpt-4.1"),
            ("gpt-4.1", "openai:gpt-4.1"),
            ("o4-mini", "openai:o4-mini"),
            ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
            ("anthropic", "anthropic:claude-sonnet-5-5"),
            (" openai: ", "openai:gpt-6-sol"),
            ("openai:meta-llama/llama-4:free", "openai:meta-llama/llama-4:free"),
            ("ollama:qwen3:8b", "ollama:qwen3:8b"),
            ("replay:a/b.jsonl", "replay:a/b.jsonl"),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<ModelSpec>().expect(text).to_string(), expected);
        }
        let unknown = "llama3:8b".parse::<ModelSpec>().expect_err("no provider").to_string();
        assert!(unknown.contains("ollama:llama3:8b"), "{unknown}");
        assert_eq!(
            "ollama".parse::<ModelSpec>().expect_err("which").to_string(),
            "which one? Write ollama:NAME"
        );
    }

    fn settings(pairs: &[(&str, &str)]) -> ModelSettings {
        ModelSettings::from_env(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[tokio::test]
    async fn the_key_that_is_set_decides() {
        let nobody = "http://127.0.0.1:1";
        let openai = choose_with(None, &settings(&[("OPENAI_API_KEY", "k")]), nobody)
            .await
            .expect("a choice");
        assert_eq!((openai.spec.to_string().as_str(), openai.notice), ("openai:gpt-6-sol", None));
        let both = settings(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]);
        let both = choose_with(None, &both, nobody).await.expect("a choice");
        assert!(both.notice.is_some_and(|remark| remark.contains("both set; taking anthropic:")));
        let blank = settings(&[("OPENAI_API_KEY", " ")]);
        let nothing =
            choose_with(None, &blank, nobody).await.expect_err("nothing is there").to_string();
        for way in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "ollama",
            "COFFERDAM_BASE_URL",
            "cofferdam demo",
        ] {
            assert!(nothing.contains(way), "{nothing}");
        }
    }

    #[tokio::test]
    async fn without_a_key_the_local_server_is_asked() {
        let tags = r#"{"models": [{"name": "llama3.1:8b"}]}"#;
        let server = ScriptedModelServer::start(vec![RawAnswer::new(
            "200 OK",
            &[("content-type", "application/json")],
            tags,
        )])
        .await;
        let choice =
            choose_with(None, &ModelSettings::default(), &server.url()).await.expect("a choice");
        assert_eq!(choice.spec.to_string(), "ollama:llama3.1:8b");
    }

    #[tokio::test]
    async fn r114_an_address_alone_gets_no_key() {
        let mut settings = settings(&[
            ("ANTHROPIC_API_KEY", "k"),
            ("COFFERDAM_BASE_URL", "http://127.0.0.1:1/v1"),
        ]);
        let alone = choose(None, &settings).await.expect_err("whose address is it?").to_string();
        assert!(
            alone.starts_with("a base URL is set (http://127.0.0.1:1/v1), but no model is named"),
            "{alone}"
        );
        let tags = r#"{"models": [{"name": "llama3.1:8b"}]}"#;
        let server = ScriptedModelServer::start(vec![RawAnswer::new(
            "200 OK",
            &[("content-type", "application/json")],
            tags,
        )])
        .await;
        settings.base_url = Some(server.url() + "/v1");
        assert_eq!(
            choose(None, &settings).await.expect("a choice").spec.to_string(),
            "ollama:llama3.1:8b"
        );
        let request = &server.requests()[0].head;
        assert!(!request.contains("authorization") && !request.contains("api-key"), "{request}");
    }

    #[test]
    fn r114_settings_do_not_print_keys() {
        let settings =
            settings(&[("OPENAI_API_KEY", "sk-secret"), ("ANTHROPIC_API_KEY", "sk-other")]);
        let printed = format!("{settings:?}");
        assert!(!printed.contains("sk-"), "{printed}");
        assert_eq!(settings.secrets().len(), 2);
    }
}
