//! Detects an Ollama server on this machine and the models it has.

use std::time::Duration;

use serde::Deserialize;

/// The timeout of the detection. A server on this machine responds at once.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The longest list of models, in bytes. A thousand models take half of it.
const MAX_LIST_BYTES: usize = 1 << 20;

/// Model families that are good at calling tools, the best for code first.
const PREFERRED_FAMILIES: [&str; 8] =
    ["qwen3-coder", "devstral", "gpt-oss", "qwen3", "glm", "mistral", "llama3.3", "llama3.1"];

#[derive(Deserialize)]
struct OllamaModelTags {
    models: Vec<OllamaModelTag>,
}

#[derive(Deserialize)]
struct OllamaModelTag {
    name: String,
}

/// Returns the preferred model of the server at this address.
///
/// Returns `None` if there is no server, or if it has no chat model.
pub(in crate::model) async fn find_ollama_model(address: &str) -> Option<String> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .ok()?;
    let request = client
        .get(format!("{address}/api/tags"))
        .header(reqwest::header::ACCEPT_ENCODING, "identity");
    let mut response = request.send().await.ok()?.error_for_status().ok()?;
    let mut list = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        list.extend_from_slice(&chunk);
        if list.len() > MAX_LIST_BYTES {
            return None;
        }
    }
    let tags: OllamaModelTags = serde_json::from_slice(&list).ok()?;
    pick(tags.models.into_iter().map(|tag| tag.name).collect())
}

/// Returns the first model of a preferred family, or else the first one, which was used last.
fn pick(names: Vec<String>) -> Option<String> {
    let chat_models: Vec<String> =
        names.into_iter().filter(|name| !name.contains("embed")).collect();
    let preferred = PREFERRED_FAMILIES
        .iter()
        .find_map(|family| chat_models.iter().find(|name| name.starts_with(family)));
    preferred.or(chat_models.first()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::test_server::{RawAnswer, ScriptedModelServer};

    #[test]
    fn a_model_that_calls_tools_is_preferred() {
        let picked = |names: &[&str]| pick(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(
            picked(&["nomic-embed-text:latest", "phi3:latest", "qwen3:8b"]),
            Some("qwen3:8b".into())
        );
        assert_eq!(picked(&["nomic-embed-text:latest", "phi3:latest"]), Some("phi3:latest".into()));
        assert_eq!(picked(&["nomic-embed-text:latest"]), None);
    }

    #[tokio::test]
    async fn a_server_is_asked_for_its_models() {
        let tags =
            r#"{"models": [{"name": "llama3.1:8b", "size": 1}, {"name": "qwen3-coder:30b"}]}"#;
        let server = ScriptedModelServer::start(vec![RawAnswer::new(
            "200 OK",
            &[("content-type", "application/json")],
            tags,
        )])
        .await;
        assert_eq!(find_ollama_model(&server.url()).await, Some("qwen3-coder:30b".into()));
        assert!(server.requests()[0].head.starts_with("get /api/tags "));
        assert_eq!(find_ollama_model("http://127.0.0.1:1").await, None);
    }

    #[tokio::test]
    async fn an_endless_list_of_models_is_ignored() {
        let start = r#"{"models": [{"name": "llama3.1:8b"}"#;
        let mut answer = RawAnswer::new("200 OK", &[("content-type", "application/json")], start);
        for _ in 0..3 {
            let more = r#", {"name": "llama3.1:8b"}"#.repeat(20_000);
            answer = answer.then(crate::model::test_server::ServerStep::Send(more.into_bytes()));
        }
        let server = ScriptedModelServer::start(vec![
            answer.then(crate::model::test_server::ServerStep::Send(b"]}".to_vec())),
        ])
        .await;
        assert_eq!(find_ollama_model(&server.url()).await, None);
    }
}
