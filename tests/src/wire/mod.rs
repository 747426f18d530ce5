//! Providers that play a script over real TCP, in their true wire formats, and judge every request
//! they get.
//!
//! A test writes what the model says ([`text_reply`], [`call_reply`], …), hands it to a
//! [`ProviderServer`], and runs the program against it. When the server goes away, each body it
//! received has to pass its provider's validator and the closed schema of that provider's own SDK
//! ([`sdk`]), no body may hold the key, each request has to begin with what the one before it held
//! and the script has to be played to its end.

#![expect(
    clippy::expect_used,
    reason = "a harness that does not work fails the test that needs it"
)]

mod anthropic;
mod history;
mod http;
mod openai;
mod request;
mod responses;
mod script;
pub mod sdk;
mod server;
pub mod validate_anthropic;
pub mod validate_openai;
pub mod validate_responses;

pub use request::{ReceivedRequest, ReceivedResult};
pub use script::{
    ScriptedReply, StopReason, StreamChunking, call_reply, empty_reply, endless_reply, error_reply,
    hanging_reply, raw_reply, text_reply,
};
pub use server::ProviderServer;

/// Whose format is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
    /// OpenAI's Responses. Whoever is to speak them to a server that is not OpenAI's has to be told
    /// so: [`Provider::config`].
    Responses,
}

/// All formats.
pub fn all_providers() -> [Provider; 3] {
    [Provider::OpenAi, Provider::Anthropic, Provider::Responses]
}

/// What holds for one provider has to hold for the other.
pub fn both_providers() -> [Provider; 2] {
    [Provider::OpenAi, Provider::Anthropic]
}

impl Provider {
    /// Plays these replies, one for each request.
    pub fn serve(self, replies: impl IntoIterator<Item = ScriptedReply>) -> ProviderServer {
        ProviderServer::start(self, replies.into_iter().collect())
    }

    /// For `--model`.
    pub fn model(self) -> &'static str {
        match self {
            Self::OpenAi => "openai:scripted",
            Self::Anthropic => "anthropic:claude-sonnet-5-5",
            Self::Responses => "openai:gpt-6-sol",
        }
    }

    /// A configuration for it, with these lines more about the provider.
    pub fn config(self, more: &str) -> String {
        let api = match self {
            Self::OpenAi | Self::Anthropic => "",
            Self::Responses => "api = \"responses\"\n",
        };
        format!("[provider]\n{api}{more}")
    }

    /// The environment variable of its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses => "OPENAI_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
        }
    }
}

/// What is wrong with a body, in words.
#[derive(Debug, Default)]
struct ValidationErrors(Vec<String>);

impl ValidationErrors {
    fn require(&mut self, fine: bool, problem: impl FnOnce() -> String) {
        if !fine {
            self.0.push(problem());
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// What ties a result to its call: some text of at most so many bytes, as models write it.
fn is_id(text: &str, longest: usize) -> bool {
    !text.trim().is_empty() && text.len() <= longest
}

/// What holds for a request to any provider.
fn check_headers(problems: &mut ValidationErrors, request: &ReceivedRequest) {
    problems.require(request.header("content-type") == Some("application/json"), || {
        "the content type is not JSON".into()
    });
    problems.require(request.header("accept-encoding") == Some("identity"), || {
        "the answer may come compressed".into()
    });
}

/// Ids are distinct in the whole conversation: servers look a result up by its id among all calls.
fn check_distinct<'a>(
    problems: &mut ValidationErrors,
    ids: impl IntoIterator<Item = &'a serde_json::Value>,
) {
    let mut seen = std::collections::HashSet::new();
    for id in ids {
        problems.require(seen.insert(id.as_str()), || format!("two calls have the id {id}"));
    }
}

/// Whether a text is a JSON object, which servers demand of the arguments of calls that go back to
/// them.
fn is_object(text: &serde_json::Value) -> bool {
    let read = text.as_str().map(serde_json::from_str::<serde_json::Value>);
    matches!(read, Some(Ok(value)) if value.is_object())
}

fn has_text(value: &serde_json::Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}
