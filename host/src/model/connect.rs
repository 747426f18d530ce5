//! Making a chosen model ready.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::anthropic::Anthropic;
use super::choice::{Api, ModelChoiceError, ModelSpec, Provider, Settings};
use super::failure::Place;
use super::http::{Line, is_loopback};
use super::openai::{Dialect, OpenAi};
use super::responses::{self, Responses};
use super::secret::Secret;
use super::{Replay, known, ollama};
use crate::agent::ports::{Model, ModelInfo};
use crate::shown;

const OPENAI: &str = "https://api.openai.com/v1";
const ANTHROPIC: &str = "https://api.anthropic.com";
/// The calls of OpenAI's two formats.
const CHAT: &str = "/chat/completions";
const RESPONSES: &str = "/responses";

/// The model, ready to be asked. Nothing is sent yet; a recording is read in full.
pub fn connect(spec: &ModelSpec, settings: &Settings) -> Result<Box<dyn Model>, ModelChoiceError> {
    match spec.provider {
        Provider::OpenAi => openai(spec, settings),
        Provider::Ollama => Ok(Box::new(ollama(spec, settings)?)),
        Provider::Anthropic => Ok(Box::new(anthropic(spec, settings)?)),
        Provider::Replay => Ok(Box::new(replay(spec)?)),
    }
}

fn openai(spec: &ModelSpec, settings: &Settings) -> Result<Box<dyn Model>, ModelChoiceError> {
    const KEY: &str = "OPENAI_API_KEY";
    let base = settings.base_url.as_deref().unwrap_or(OPENAI);
    let url = endpoint(base, CHAT, &[])?;
    let is_openai = url.host_str().is_some_and(|host| host == "api.openai.com" || host.ends_with(".api.openai.com"));
    // Other servers speak chat completions, whatever their models are called, unless they are said to speak the other one.
    let by_model = if is_openai { known::api(&spec.model) } else { Api::ChatCompletions };
    let by_address = base.trim().trim_end_matches('/').ends_with(RESPONSES).then_some(Api::Responses);
    let api = settings.api.or(by_address).unwrap_or(by_model);
    if is_openai && settings.openai_key.is_none() {
        return Err(ModelChoiceError::NoKey { provider: "OpenAI", variable: KEY });
    }
    let provider = if is_openai { "OpenAI" } else { "The server" };
    let place = Place { provider, host: String::new(), key_name: KEY, key: settings.openai_key.clone() };
    let model: Box<dyn Model> = match api {
        Api::ChatCompletions => Box::new(chat(spec, settings, url, place, is_openai)?),
        Api::Responses => {
            let base = base.trim().trim_end_matches('/').trim_end_matches(CHAT);
            Box::new(responses(spec, settings, endpoint(base, RESPONSES, &[])?, place, is_openai)?)
        }
    };
    Ok(model)
}

fn responses(spec: &ModelSpec, settings: &Settings, url: Url, place: Place, is_openai: bool) -> Result<Responses, ModelChoiceError> {
    let model = spec.model.as_str();
    let dialect = responses::Dialect {
        thinks: known::seals_thinking(model),
        has_phases: known::has_phases(model),
        takes_pictures: is_openai,
        reasoning_effort: settings.reasoning_effort.clone(),
        max_output: settings.max_output,
    };
    Ok(Responses { info: info(spec, settings), line: line(url, bearer(&place)?, place, settings)?, dialect })
}

fn ollama(spec: &ModelSpec, settings: &Settings) -> Result<OpenAi, ModelChoiceError> {
    let base = settings.base_url.as_deref().unwrap_or(ollama::DEFAULT_ADDRESS);
    let url = endpoint(base, CHAT, &["/v1"])?;
    chat(spec, settings, url, Place { provider: "Ollama", host: String::new(), key_name: "OLLAMA_API_KEY", key: None }, false)
}

fn bearer(place: &Place) -> Result<HeaderMap, ModelChoiceError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &place.key {
        headers.insert(reqwest::header::AUTHORIZATION, sensitive("Bearer ", key, place.key_name)?);
    }
    Ok(headers)
}

fn chat(spec: &ModelSpec, settings: &Settings, url: Url, place: Place, is_openai: bool) -> Result<OpenAi, ModelChoiceError> {
    let dialect = Dialect {
        reasoning_effort: settings.reasoning_effort.clone(),
        max_output: settings.max_output,
        ..Dialect::of(&spec.model, is_openai)
    };
    Ok(OpenAi { info: info(spec, settings), line: line(url, bearer(&place)?, place, settings)?, dialect })
}

fn anthropic(spec: &ModelSpec, settings: &Settings) -> Result<Anthropic, ModelChoiceError> {
    const KEY: &str = "ANTHROPIC_API_KEY";
    let base = settings.base_url.as_deref().unwrap_or(ANTHROPIC);
    let url = endpoint(base, "/messages", &["/v1"])?;
    if url.host_str() == Some("api.anthropic.com") && settings.anthropic_key.is_none() {
        return Err(ModelChoiceError::NoKey { provider: "Anthropic", variable: KEY });
    }
    let mut headers = HeaderMap::from_iter([(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"))]);
    if let Some(key) = &settings.anthropic_key {
        headers.insert(HeaderName::from_static("x-api-key"), sensitive("", key, KEY)?);
    }
    let place = Place { provider: "Anthropic", host: String::new(), key_name: KEY, key: settings.anthropic_key.clone() };
    let max_tokens = settings.max_output.unwrap_or_else(|| known::max_output(&spec.model));
    Ok(Anthropic { info: info(spec, settings), line: line(url, headers, place, settings)?, max_tokens, thinks: known::thinks(&spec.model) })
}

fn replay(spec: &ModelSpec) -> Result<Replay, ModelChoiceError> {
    let path = shown::line(&spec.model, 400);
    let text = std::fs::read_to_string(&spec.model).map_err(|source| ModelChoiceError::Unreadable { path: path.clone(), source })?;
    Replay::parse(&text).map_err(|source| ModelChoiceError::Recording { path, source })
}

fn info(spec: &ModelSpec, settings: &Settings) -> ModelInfo {
    let context_window = settings.context_window.unwrap_or_else(|| known::context_window(spec.provider, &spec.model));
    let own = match spec.provider {
        Provider::OpenAi => Some(OPENAI),
        Provider::Anthropic => Some(ANTHROPIC),
        Provider::Ollama => Some(ollama::DEFAULT_ADDRESS),
        Provider::Replay => None,
    };
    let plain = |address: &str| address.trim_end_matches('/').trim_end_matches("/v1").to_owned();
    let address = settings.base_url.as_deref().map(str::trim).filter(|url| Some(plain(url)) != own.map(plain)).map(str::to_owned);
    let (provider, model) = (spec.provider.name().to_owned(), spec.model.clone());
    ModelInfo { provider, model, address, context_window, max_output: settings.max_output }
}

fn line(url: Url, headers: HeaderMap, mut place: Place, settings: &Settings) -> Result<Line, ModelChoiceError> {
    place.host = url.host_str().unwrap_or_default().to_owned();
    if let Some(port) = url.port() {
        place.host = format!("{}:{port}", place.host);
    }
    if url.scheme() == "http" && place.key.is_some() && !is_loopback(&url) && !settings.allow_plain_http {
        return Err(ModelChoiceError::PlainHttp(place.host));
    }
    Ok(Line::new(url, headers, place, settings.timing)?)
}

/// The address of the API's one call. People give the base with or without its version, with or without a slash, and
/// sometimes the whole address.
fn endpoint(base: &str, call: &str, prefix_unless_there: &[&str]) -> Result<Url, ModelChoiceError> {
    let base = base.trim().trim_end_matches('/');
    let bad = |problem: &str| ModelChoiceError::BadUrl { url: shown::line(base, 200), problem: problem.to_owned() };
    // First of all, so that what it says is not repeated.
    if base.split_once("://").is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@')) {
        return Err(ModelChoiceError::BadUrl {
            url: "…@…".into(), problem: "a key or password does not belong into an address".into()
        });
    }
    if !base.is_empty() && !base.contains("://") {
        return Err(bad(&format!("it has no scheme; write http://{0} or https://{0}", shown::line(base, 200))));
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
    let url = Url::parse(base).and_then(|_| Url::parse(&whole)).map_err(|error| bad(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(bad("it should begin with https:// or http://")),
    }
}

fn sensitive(before: &str, key: &Secret, name: &'static str) -> Result<HeaderValue, ModelChoiceError> {
    let mut value = HeaderValue::from_str(&format!("{before}{}", key.expose())).map_err(|_| ModelChoiceError::BadKey(name))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_people_write_them() {
        let cases = [
            ("https://api.openai.com/v1", "/chat/completions", &[][..], "https://api.openai.com/v1/chat/completions"),
            ("https://openrouter.ai/api/v1/", "/chat/completions", &[], "https://openrouter.ai/api/v1/chat/completions"),
            ("http://localhost:8080/v1/chat/completions", "/chat/completions", &[], "http://localhost:8080/v1/chat/completions"),
            ("http://127.0.0.1:11434", "/chat/completions", &["/v1"], "http://127.0.0.1:11434/v1/chat/completions"),
            ("http://127.0.0.1:11434/v1", "/chat/completions", &["/v1"], "http://127.0.0.1:11434/v1/chat/completions"),
            ("https://api.anthropic.com", "/messages", &["/v1"], "https://api.anthropic.com/v1/messages"),
            ("https://api.openai.com/v1", "/responses", &[], "https://api.openai.com/v1/responses"),
        ];
        for (base, call, prefix, expected) in cases {
            assert_eq!(endpoint(base, call, prefix).expect(base).as_str(), expected);
        }
        for base in ["", "localhost:8080", "ftp://x/v1", "https://"] {
            assert!(endpoint(base, "/messages", &[]).is_err(), "{base}");
        }
        for base in ["localhost:8080/v1", "127.0.0.1:8080", "example.com/v1", "[::1]:8080", "box"] {
            let problem = endpoint(base, "/messages", &[]).expect_err(base).to_string();
            assert!(problem.contains(&format!("it has no scheme; write http://{base} or https://{base}")), "{problem}");
        }
        let secret = endpoint("https://me:sk-secret@proxy/v1", "/messages", &[]).expect_err("a password in it").to_string();
        assert!(!secret.contains("sk-secret"), "{secret}");
    }

    fn problem(spec: &str, settings: &Settings) -> String {
        connect(&spec.parse().expect("a spec"), settings).map(|model| model.info().clone()).expect_err("a problem").to_string()
    }

    #[test]
    fn what_is_missing_is_said() {
        let none = Settings::default();
        assert_eq!(problem("openai", &none), "OpenAI needs a key: set OPENAI_API_KEY");
        assert_eq!(problem("anthropic", &none), "Anthropic needs a key: set ANTHROPIC_API_KEY");
        assert!(problem("replay:/no/such/file", &none).starts_with("cannot read the recording /no/such/file: "));
        let bad_key = Settings { openai_key: Secret::new("sk-\nsecret"), ..Settings::default() };
        assert!(problem("openai", &bad_key).starts_with("OPENAI_API_KEY holds characters"));
    }

    #[test]
    fn r114_a_key_does_not_travel_unencrypted() {
        let mut settings = Settings { openai_key: Secret::new("k"), base_url: Some("http://gpu.example/v1".into()), ..Settings::default() };
        assert!(problem("openai:m", &settings).starts_with("the key would travel to gpu.example unencrypted"));
        settings.allow_plain_http = true;
        assert!(connect(&"openai:m".parse().expect("a spec"), &settings).is_ok());
        settings.allow_plain_http = false;
        settings.base_url = Some("http://[::1]:8000/v1".into());
        assert!(connect(&"openai:m".parse().expect("a spec"), &settings).is_ok());
    }

    #[test]
    fn a_model_tells_where_it_is_unless_that_is_with_its_provider() {
        let address = |spec: &str, url: &str| {
            let settings = Settings {
                openai_key: Secret::new("k"),
                anthropic_key: Secret::new("k"),
                base_url: Some(url.to_owned()),
                ..Settings::default()
            };
            connect(&spec.parse().expect("a spec"), &settings).expect("connected").info().address.clone()
        };
        let own = [
            ("openai:m", "https://api.openai.com/v1/"),
            ("anthropic:m", "https://api.anthropic.com"),
            ("ollama:m", ollama::DEFAULT_ADDRESS),
        ];
        for (spec, url) in own {
            assert_eq!(address(spec, url), None, "{url}");
        }
        assert_eq!(address("openai:m", " http://localhost:8000/v1").as_deref(), Some("http://localhost:8000/v1"));
        assert_eq!(address("anthropic:m", "https://api.openai.com/v1").as_deref(), Some("https://api.openai.com/v1"));
    }

    #[test]
    fn a_model_tells_its_window() {
        let settings = Settings { anthropic_key: Secret::new("k"), ..Settings::default() };
        let model = connect(&"claude-haiku-4-5".parse().expect("a spec"), &settings).expect("connected");
        let (provider, model_name) = ("anthropic".to_owned(), "claude-haiku-4-5".to_owned());
        let expected = ModelInfo { provider, model: model_name, address: None, context_window: 200_000, max_output: None };
        assert_eq!(*model.info(), expected);
        let settings = Settings { context_window: Some(1_234), ..settings };
        assert_eq!(connect(&"claude-haiku-4-5".parse().expect("a spec"), &settings).expect("connected").info().context_window, 1_234);
    }
}
