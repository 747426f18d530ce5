//! A request as it arrived, and the same questions to it whatever its format.

use serde_json::Value;

use super::{Provider, anthropic, openai, responses};

/// One request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Whose format it has.
    pub provider: Provider,
    /// The path of its address.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// All of it.
    pub body: Value,
}

/// A result as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedResult {
    /// Whose result it is.
    pub id: String,
    /// Without the mark of an error.
    pub text: String,
    /// Whether it is marked as an error.
    pub is_error: bool,
}

impl ReceivedRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    /// The system prompt.
    pub fn system_prompt(&self) -> String {
        match self.provider {
            Provider::OpenAi => openai::system_prompt(&self.body),
            Provider::Anthropic => anthropic::system_prompt(&self.body),
            Provider::Responses => responses::system_prompt(&self.body),
        }
    }

    /// The names of the tools that are offered.
    pub fn tool_names(&self) -> Vec<String> {
        match self.provider {
            Provider::OpenAi => openai::tool_names(&self.body),
            Provider::Anthropic => anthropic::tool_names(&self.body),
            Provider::Responses => responses::tool_names(&self.body),
        }
    }

    /// Whether the model may call them.
    pub fn allows_calls(&self) -> bool {
        let choice = &self.body["tool_choice"];
        choice.as_str().or(choice["type"].as_str()) != Some("none")
    }

    /// The results of the newest assistant message, in their order.
    pub fn tool_results(&self) -> Vec<ReceivedResult> {
        match self.provider {
            Provider::OpenAi => openai::tool_results(&self.body),
            Provider::Anthropic => anthropic::tool_results(&self.body),
            Provider::Responses => responses::tool_results(&self.body),
        }
    }

    /// The texts on the user's side, in their order, without results.
    pub fn user_texts(&self) -> Vec<String> {
        match self.provider {
            Provider::OpenAi => openai::user_texts(&self.body),
            Provider::Anthropic => anthropic::user_texts(&self.body),
            Provider::Responses => responses::user_texts(&self.body),
        }
    }

    /// How often a text stands anywhere in the body.
    pub fn count_occurrences(&self, text: &str) -> usize {
        let quoted = Value::from(text).to_string();
        self.body.to_string().matches(quoted.trim_matches('"')).count()
    }
}
