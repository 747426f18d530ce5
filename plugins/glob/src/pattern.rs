//! Converts the pattern of a model to a glob of the host.

use cofferdam_sdk::ToolError;

/// Returns the glob for the walk.
pub(crate) fn glob(pattern: &str) -> Result<String, ToolError> {
    let (not, names) = match pattern.strip_prefix('!') {
        Some(names) => ("!", names),
        None => ("", pattern),
    };
    let names = names.strip_prefix("./").unwrap_or(names);
    // The error of the host does not say how to correct the pattern.
    if names.trim().is_empty() {
        return Err(ToolError::invalid_input(
            "/pattern",
            "the pattern is empty. `*.rs` finds files by extension, `**` finds every file",
        ));
    }
    Ok(format!("{not}{names}"))
}

/// Returns the likely reason why a pattern matches no file, if its form shows one.
pub(crate) fn hint(pattern: &str) -> Option<String> {
    let directory = pattern.strip_suffix('/')?;
    Some(format!(
        "a pattern that ends with `/` matches directories, but this tool finds only files: try \
            `{directory}/**`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_pattern_is_unchanged() {
        for pattern in
            ["*.rs", "src/**/*.{ts,tsx}", "!*.md", "/Cargo.toml", "!#x", "#notes#", ".env*"]
        {
            assert_eq!(glob(pattern).as_deref(), Ok(pattern));
        }
    }

    #[test]
    fn a_dot_and_slash_in_front_are_removed() {
        for (pattern, expected) in [("./src/*.rs", "src/*.rs"), ("!./src/*.rs", "!src/*.rs")] {
            assert_eq!(glob(pattern).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn an_empty_pattern_is_refused() {
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
