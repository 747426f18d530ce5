//! From what a model writes to what the host's walk takes.

use cofferdam_sdk::ToolError;

/// The glob for the host's walk.
pub(crate) fn glob(pattern: &str) -> Result<String, ToolError> {
    let (not, names) = match pattern.strip_prefix('!') {
        Some(names) => ("!", names),
        None => ("", pattern),
    };
    let names = names.strip_prefix("./").unwrap_or(names);
    // The host would say so too, and not how to do better.
    if names.trim().is_empty() {
        return Err(ToolError::invalid_input(
            "/pattern",
            "the pattern is empty. `*.rs` finds by ending, `**` finds every file",
        ));
    }
    Ok(format!("{not}{names}"))
}

/// Why a pattern may have found nothing, if its form says so.
pub(crate) fn hint(pattern: &str) -> Option<String> {
    let directory = pattern.strip_suffix('/')?;
    Some(format!(
        "a `/` at the end stands for directories, and only files are found: try `{directory}/**`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stays_as_it_is() {
        for pattern in
            ["*.rs", "src/**/*.{ts,tsx}", "!*.md", "/Cargo.toml", "!#x", "#notes#", ".env*"]
        {
            assert_eq!(glob(pattern).as_deref(), Ok(pattern));
        }
    }

    #[test]
    fn what_gitignore_would_not_understand_is_put_right() {
        for (pattern, expected) in [("./src/*.rs", "src/*.rs"), ("!./src/*.rs", "!src/*.rs")] {
            assert_eq!(glob(pattern).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_pattern_that_says_nothing_is_refused() {
        for pattern in ["", " ", "!", "./", "! "] {
            assert!(
                matches!(
                    glob(pattern),
                    Err(ToolError::InvalidInput(problem)) if problem.pointer == "/pattern"
                ),
                "{pattern}"
            );
        }
    }
}
