//! Connects to the providers of models.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::anthropic::AnthropicModel;
use super::failure::ServerEndpoint;
use super::http::{Transport, is_loopback};
use super::known_models;
use super::openai::{ChatDialect, ChatModel, RefusedKeys};
use super::responses::{self, ResponsesModel};
use crate::agent::ports::{LanguageModel, ModelInfo};
use crate::model::connect::{ANTHROPIC_URL, OLLAMA_URL, OPENAI_URL, other_address};
use crate::model::{ApiKey, ModelChoiceError, ModelSettings, ModelSpec, OpenAiApi};
use crate::terminal_escape;

/// The paths of OpenAI's two APIs.
const CHAT_PATH: &str = "/chat/completions";
const RESPONSES_PATH: &str = "/responses";

/// Creates the client of a model of OpenAI, or of a compatible server.
pub(in crate::model) fn connect_openai(
    spec: &ModelSpec,
    settings: &ModelSettings,
) -> Result<Box<dyn LanguageModel>, ModelChoiceError> {
    const KEY: &str = "OPENAI_API_KEY";
    let base = settings.base_url.as_deref().unwrap_or(OPENAI_URL);
    let url = endpoint_url(base, CHAT_PATH, &[])?;
    let is_openai = url
        .host_str()
        .is_some_and(|host| host == "api.openai.com" || host.ends_with(".api.openai.com"));
    // Other servers implement chat completions for all models, unless the settings or the address
    // say otherwise.
    let by_model =
        if is_openai { known_models::api(&spec.model) } else { OpenAiApi::ChatCompletions };
    let by_address =
        base.trim().trim_end_matches('/').ends_with(RESPONSES_PATH).then_some(OpenAiApi::Responses);
    let api = settings.api.or(by_address).unwrap_or(by_model);
    if is_openai && settings.openai_key.is_none() {
        return Err(ModelChoiceError::NoKey { provider: "OpenAI", variable: KEY });
    }
    let provider = if is_openai { "OpenAI" } else { "the server" };
    let endpoint = ServerEndpoint {
        provider,
        host: String::new(),
        key_variable: KEY,
        key: settings.openai_key.clone(),
    };
    let model: Box<dyn LanguageModel> = match api {
        OpenAiApi::ChatCompletions => {
            Box::new(connect_chat(spec, settings, url, endpoint, is_openai)?)
        }
        OpenAiApi::Responses => {
            let base = base.trim().trim_end_matches('/').trim_end_matches(CHAT_PATH);
            Box::new(connect_responses(
                spec,
                settings,
                endpoint_url(base, RESPONSES_PATH, &[])?,
                endpoint,
                is_openai,
            )?)
        }
    };
    Ok(model)
}

fn connect_responses(
    spec: &ModelSpec,
    settings: &ModelSettings,
    url: Url,
    endpoint: ServerEndpoint,
    is_openai: bool,
) -> Result<ResponsesModel, ModelChoiceError> {
    let model = spec.model.as_str();
    let dialect = responses::ResponsesDialect {
        encrypts_thinking: known_models::encrypts_thinking(model),
        has_phases: known_models::has_phases(model),
        is_openai,
        accepts_images: is_openai,
        reasoning_effort: settings.reasoning_effort.clone(),
        max_output: settings.max_output,
    };
    let info = model_info(spec, settings);
    Ok(ResponsesModel {
        transport: new_transport(url, bearer_headers(&endpoint)?, endpoint, settings, &info)?,
        info,
        dialect,
    })
}

/// Creates the client of a model of an Ollama server.
pub(in crate::model) fn connect_ollama(
    spec: &ModelSpec,
    settings: &ModelSettings,
) -> Result<Box<dyn LanguageModel>, ModelChoiceError> {
    let base = settings.base_url.as_deref().unwrap_or(OLLAMA_URL);
    let url = endpoint_url(base, CHAT_PATH, &["/v1"])?;
    let endpoint = ServerEndpoint {
        provider: "Ollama",
        host: String::new(),
        key_variable: "OLLAMA_API_KEY",
        key: None,
    };
    Ok(Box::new(connect_chat(spec, settings, url, endpoint, false)?))
}

fn bearer_headers(endpoint: &ServerEndpoint) -> Result<HeaderMap, ModelChoiceError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &endpoint.key {
        headers.insert(
            reqwest::header::AUTHORIZATION,
            sensitive_header("Bearer ", key, endpoint.key_variable)?,
        );
    }
    Ok(headers)
}

fn connect_chat(
    spec: &ModelSpec,
    settings: &ModelSettings,
    url: Url,
    endpoint: ServerEndpoint,
    is_openai: bool,
) -> Result<ChatModel, ModelChoiceError> {
    let dialect = ChatDialect {
        reasoning_effort: settings.reasoning_effort.clone(),
        max_output: settings.max_output,
        uses_max_completion_tokens: is_openai || is_azure(&url),
        ..ChatDialect::for_model(&spec.model, is_openai)
    };
    let info = model_info(spec, settings);
    let line = new_transport(url, bearer_headers(&endpoint)?, endpoint, settings, &info)?;
    Ok(ChatModel { info, transport: line, dialect, rejected_keys: RefusedKeys::default() })
}

/// Returns whether the URL belongs to OpenAI's models on Azure.
///
/// Like OpenAI itself, they refuse the old name of the output limit.
fn is_azure(url: &Url) -> bool {
    const ENDS: [&str; 3] =
        [".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"];
    url.host_str().is_some_and(|host| ENDS.iter().any(|end| host.ends_with(end)))
}

/// Creates the client of a model of Anthropic.
pub(in crate::model) fn connect_anthropic(
    spec: &ModelSpec,
    settings: &ModelSettings,
) -> Result<Box<dyn LanguageModel>, ModelChoiceError> {
    const KEY: &str = "ANTHROPIC_API_KEY";
    let base = settings.base_url.as_deref().unwrap_or(ANTHROPIC_URL);
    let url = endpoint_url(base, "/messages", &["/v1"])?;
    if url.host_str() == Some("api.anthropic.com") && settings.anthropic_key.is_none() {
        return Err(ModelChoiceError::NoKey { provider: "Anthropic", variable: KEY });
    }
    let mut headers = HeaderMap::from_iter([(
        HeaderName::from_static("anthropic-version"),
        HeaderValue::from_static("2023-06-01"),
    )]);
    if let Some(key) = &settings.anthropic_key {
        headers.insert(HeaderName::from_static("x-api-key"), sensitive_header("", key, KEY)?);
    }
    let endpoint = ServerEndpoint {
        provider: "Anthropic",
        host: String::new(),
        key_variable: KEY,
        key: settings.anthropic_key.clone(),
    };
    let max_tokens = settings.max_output.unwrap_or_else(|| known_models::max_output(&spec.model));
    let info = model_info(spec, settings);
    Ok(Box::new(AnthropicModel {
        transport: new_transport(url, headers, endpoint, settings, &info)?,
        info,
        max_tokens,
        adaptive_thinking: known_models::supports_adaptive_thinking(&spec.model),
    }))
}

fn model_info(spec: &ModelSpec, settings: &ModelSettings) -> ModelInfo {
    let context_window = settings
        .context_window
        .unwrap_or_else(|| known_models::context_window(spec.provider, &spec.model));
    let address = other_address(spec, settings);
    let (provider, model) = (spec.provider.name().to_owned(), spec.model.clone());
    ModelInfo { provider, model, address, context_window, max_output: settings.max_output }
}

fn new_transport(
    url: Url,
    headers: HeaderMap,
    mut endpoint: ServerEndpoint,
    settings: &ModelSettings,
    info: &ModelInfo,
) -> Result<Transport, ModelChoiceError> {
    endpoint.host = url.host_str().unwrap_or_default().to_owned();
    if let Some(port) = url.port() {
        endpoint.host = format!("{}:{port}", endpoint.host);
    }
    if url.scheme() == "http"
        && endpoint.key.is_some()
        && !is_loopback(&url)
        && !settings.allow_plain_http
    {
        return Err(ModelChoiceError::PlainHttp(endpoint.host));
    }
    Transport::new(url, headers, endpoint, settings.timing, info)
        .map_err(|error| ModelChoiceError::Client(Box::new(error)))
}

/// Returns the URL of an API call.
///
/// The base may be given with or without the version, with or without a trailing slash, or as the
/// complete URL of the call.
fn endpoint_url(
    base: &str,
    call: &str,
    prefix_unless_there: &[&str],
) -> Result<Url, ModelChoiceError> {
    let base = base.trim().trim_end_matches('/');
    let bad = |problem: &str| ModelChoiceError::InvalidBaseUrl {
        url: terminal_escape::escape_line(base, 200),
        problem: problem.to_owned(),
    };
    // This check comes first, so that no other error message repeats the password.
    if base
        .split_once("://")
        .is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@'))
    {
        return Err(ModelChoiceError::InvalidBaseUrl {
            url: "…@…".into(),
            problem: "it must not contain a user name, password or key".into(),
        });
    }
    if !base.is_empty() && !base.contains("://") {
        return Err(bad(&format!(
            "it has no scheme (write http://{0} or https://{0})",
            terminal_escape::escape_line(base, 200)
        )));
    }
    let mut whole = base.to_owned();
    if !whole.ends_with(call) {
        for prefix in prefix_unless_there {
            if !whole.ends_with(prefix) {
                whole.push_str(prefix);
            }
        }
        whole.push_str(call);
    }
    let url = Url::parse(base)
        .and_then(|_| Url::parse(&whole))
        .map_err(|error| bad(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(bad("it must begin with https:// or http://")),
    }
}

fn sensitive_header(
    before: &str,
    key: &ApiKey,
    name: &'static str,
) -> Result<HeaderValue, ModelChoiceError> {
    let mut value = HeaderValue::from_str(&format!("{before}{}", key.to_header()))
        .map_err(|_| ModelChoiceError::InvalidKey(name))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
