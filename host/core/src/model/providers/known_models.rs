//! Known properties of models by name: context windows, limits and defaults.
//!
//! As of November 2026, from <https://platform.claude.com/docs/en/about-claude/models/overview> and
//! <https://developers.openai.com/api/docs/models>.

use crate::model::choice::{OpenAiApi, ProviderKind};

/// Returns the context window of a model in tokens, for when none is configured.
pub(super) fn context_window(provider: ProviderKind, model: &str) -> u64 {
    const WINDOWS: [(&str, u64); 23] = [
        ("claude-fable", 1_000_000),
        ("claude-haiku-5", 1_000_000),
        ("claude-mythos", 1_000_000),
        ("claude-opus-4-6", 1_000_000),
        ("claude-opus-4-7", 1_000_000),
        ("claude-opus-4-8", 1_000_000),
        ("claude-opus-5", 1_000_000),
        ("claude-sonnet-4-6", 1_000_000),
        ("claude-sonnet-5", 1_000_000),
        ("claude-", 200_000),
        ("gpt-4.1", 1_047_576),
        ("gpt-4o", 128_000),
        ("gpt-5.4-mini", 400_000),
        ("gpt-5.4-nano", 400_000),
        ("gpt-5.4", 1_050_000),
        ("gpt-5.5", 1_050_000),
        ("gpt-5.6", 1_050_000),
        ("gpt-5-chat", 128_000),
        ("gpt-5", 400_000),
        ("gpt-6", 1_050_000),
        ("gpt-oss", 131_072),
        ("o3", 200_000),
        ("o4-mini", 200_000),
    ];
    let named =
        WINDOWS.iter().find(|(prefix, _)| model.starts_with(prefix)).map(|(_, window)| *window);
    match provider {
        // A local server is usually started with far less context than its models support, and
        // truncates silently.
        ProviderKind::Ollama => 32_768,
        ProviderKind::OpenAi | ProviderKind::Replay => named.unwrap_or(128_000),
        ProviderKind::Anthropic => named.unwrap_or(200_000),
    }
}

/// Returns the API for a model of OpenAI itself.
///
/// Over chat completions, the newer models can call tools only without thinking, and some models
/// are not available at all.
pub(super) fn api(model: &str) -> OpenAiApi {
    const NEWER: [&str; 4] = ["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"];
    let is_newer = NEWER.iter().any(|prefix| model.starts_with(prefix));
    if is_newer || model.contains("-codex") || model.contains("-pro") {
        OpenAiApi::Responses
    } else {
        OpenAiApi::ChatCompletions
    }
}

/// Returns whether a model of OpenAI returns encrypted thinking on request.
///
/// Other models refuse a request that asks for it.
pub(super) fn encrypts_thinking(model: &str) -> bool {
    const THINKING: [&str; 6] = ["gpt-5", "gpt-6", "o1", "o3", "o4", "codex-"];
    THINKING.iter().any(|prefix| model.starts_with(prefix)) && !model.contains("-chat")
}

/// Returns whether a model of OpenAI marks interim remarks and final answers differently.
pub(super) fn has_phases(model: &str) -> bool {
    const TELLING: [&str; 5] = ["gpt-5.3-codex", "gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"];
    TELLING.iter().any(|prefix| model.starts_with(prefix))
}

/// Returns the output limit of a Claude model in tokens, thinking included.
///
/// Anthropic requires a limit, and refuses one above the model's own.
pub(super) fn max_output(model: &str) -> u64 {
    const SMALL: [(&str, u64); 3] =
        [("claude-3-5", 8_192), ("claude-3-7", 32_000), ("claude-3", 4_096)];
    SMALL.iter().find(|(prefix, _)| model.starts_with(prefix)).map_or(32_000, |(_, max)| *max)
}

/// Returns whether a Claude model supports adaptive thinking.
pub(super) fn supports_adaptive_thinking(model: &str) -> bool {
    const THINKING: [&str; 9] = [
        "claude-fable",
        "claude-haiku-5",
        "claude-mythos",
        "claude-opus-4-6",
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-opus-5",
        "claude-sonnet-4-6",
        "claude-sonnet-5",
    ];
    THINKING.iter().any(|prefix| model.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_models_use_the_responses_api() {
        for model in
            ["gpt-6-sol", "gpt-6.2-astra", "gpt-5.4-mini", "gpt-5.1-codex", "gpt-5.2-pro", "o3-pro"]
        {
            assert_eq!(
                (api(model), encrypts_thinking(model)),
                (OpenAiApi::Responses, true),
                "{model}"
            );
        }
        for model in ["gpt-5.1", "gpt-5-mini", "gpt-4.1", "gpt-4o", "o4-mini", "qwen3-coder"] {
            assert_eq!(api(model), OpenAiApi::ChatCompletions, "{model}");
        }
        assert!(
            !encrypts_thinking("gpt-4.1")
                && !encrypts_thinking("gpt-5-chat-latest")
                && encrypts_thinking("gpt-5-mini")
        );
        assert!(has_phases("gpt-6-sol") && !has_phases("gpt-5.1"));
    }

    #[test]
    fn the_longest_name_wins() {
        assert_eq!(context_window(ProviderKind::Anthropic, "claude-sonnet-5-5"), 1_000_000);
        assert_eq!(context_window(ProviderKind::Anthropic, "claude-haiku-4-5-20251001"), 200_000);
        assert_eq!(context_window(ProviderKind::OpenAi, "gpt-5.4-mini"), 400_000);
        assert_eq!(context_window(ProviderKind::OpenAi, "gpt-5-mini"), 400_000);
        assert_eq!(context_window(ProviderKind::OpenAi, "something-else"), 128_000);
        assert_eq!(context_window(ProviderKind::Ollama, "gpt-oss:20b"), 32_768);
        assert_eq!(max_output("claude-3-haiku-20240307"), 4_096);
        assert_eq!(max_output("claude-3-5-haiku-latest"), 8_192);
        assert_eq!(max_output("claude-sonnet-5-5"), 32_000);
    }
}
