//! Resolution of the `[commands]` section.

use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;

use super::raw::RawCommands;
use crate::policy::{
    CommandLimits, CommandNetwork, CommandRules, DirectDirectory, InvalidDirectDirectory,
    PatternError, SandboxLevel, SourceLocation,
};

/// The reason why the `[commands]` section is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCommands {
    /// `commands.at_most` is lower than `commands.minimum`.
    #[error(
        "invalid configuration: `commands.at_most = \"{0}\"` is below `commands.minimum = \
            \"{1}\"`, so no command could run"
    )]
    MaximumBelowMinimum(SandboxLevel, SandboxLevel),
    /// A limit such as `commands.max_processes` is below its minimum.
    #[error("invalid configuration: `commands.{0} = {1}` is too low; use {2} or more")]
    BelowMinimum(&'static str, u64, u64),
    /// An entry of `commands.direct` is no directory that commands may write directly.
    #[error("invalid configuration: `commands.direct`: {0}")]
    Direct(#[source] InvalidDirectDirectory),
    /// An entry of `[commands.network]` is no host pattern.
    #[error("invalid configuration: `commands.network`: {0}")]
    Host(#[source] PatternError),
}

/// Resolves the section and fills in the defaults. `locate` returns the location of a span.
///
/// # Errors
/// No sandbox level is possible, or a limit is too low.
pub(super) fn resolve(
    raw: RawCommands,
    locate: &dyn Fn(Range<usize>) -> SourceLocation,
) -> Result<CommandRules, InvalidCommands> {
    let defaults = CommandRules::default();
    let minimum = raw.minimum.map_or(defaults.minimum, Spanned::into_inner);
    let maximum = raw.at_most.unwrap_or(defaults.maximum);
    if maximum < minimum {
        return Err(InvalidCommands::MaximumBelowMinimum(maximum, minimum));
    }
    let at_least = |name, value: Option<u64>, default, minimum| match value {
        Some(value) if value < minimum => Err(InvalidCommands::BelowMinimum(name, value, minimum)),
        Some(value) => Ok(value),
        None => Ok(default),
    };
    let limits = CommandLimits {
        processes: at_least("max_processes", raw.max_processes, defaults.limits.processes, 8)?,
        descriptors: at_least(
            "max_descriptors",
            raw.max_descriptors,
            defaults.limits.descriptors,
            32,
        )?,
        file_size: at_least("max_file_mib", raw.max_file_mib, defaults.limits.file_size >> 20, 1)?
            .saturating_mul(1 << 20),
        memory: match raw.max_memory_mib {
            Some(mib) => {
                Some(at_least("max_memory_mib", Some(mib), 0, 64)?.saturating_mul(1 << 20))
            }
            None => defaults.limits.memory,
        },
        seconds: raw
            .max_seconds
            .map(|seconds| at_least("max_seconds", Some(seconds), 0, 1))
            .transpose()?,
    };
    let paths = |paths: Vec<Spanned<PathBuf>>| paths.into_iter().map(Spanned::into_inner).collect();
    let (read, write) = (paths(raw.read), paths(raw.write));
    let network = raw.network.map_or(Ok(CommandNetwork::None), |network| {
        let place = locate(network.span());
        network.into_inner().resolve(place)
    })?;
    let direct = raw.direct.iter().map(|text| DirectDirectory::parse(text.get_ref()));
    let direct = direct.collect::<Result<_, _>>().map_err(InvalidCommands::Direct)?;
    let review_changes = raw.review_changes;
    Ok(CommandRules {
        minimum,
        required_by: None,
        maximum,
        network,
        read,
        write,
        direct,
        review_changes,
        limits,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::RawConfig;
    use super::*;

    fn rules(text: &str) -> Result<CommandRules, String> {
        let raw = RawConfig::parse(text, Path::new("/c/config.toml"), None)
            .map_err(|error| error.to_string())?;
        resolve(raw.commands.clone(), &|span| raw.location(span)).map_err(|error| error.to_string())
    }

    #[test]
    fn by_default_commands_need_a_sandbox_and_have_no_network() {
        let rules = rules("").expect("it resolves");
        assert_eq!(
            (rules.minimum, rules.maximum, rules.network),
            (SandboxLevel::Kernel, SandboxLevel::Full, CommandNetwork::None)
        );
    }

    #[test]
    fn contradictory_sandbox_levels_are_an_error() {
        assert!(
            rules("[commands]\nat_most = \"none\"").unwrap_err().contains("no command could run")
        );
        assert!(rules("[commands]\nminimum = \"full\"\nat_most = \"kernel\"").is_err());
        assert_eq!(
            rules("[commands]\nminimum = \"none\"\nat_most = \"none\"").map(|rules| rules.maximum),
            Ok(SandboxLevel::None)
        );
    }

    #[test]
    fn directories_that_commands_write_directly_are_plain() {
        let direct = rules("[commands]\ndirect = [\"target/\", \"web/node_modules\"]");
        let direct = direct.map(|rules| rules.direct.iter().map(ToString::to_string).collect());
        assert_eq!(direct, Ok(vec!["target".to_owned(), "web/node_modules".to_owned()]));
        let problem = rules("[commands]\ndirect = [\"../x\"]").expect_err("it leads out");
        assert!(
            problem.contains("`commands.direct`: \"../x\" is not a plain directory"),
            "{problem}"
        );
        assert!(rules("[commands]\ndirect = [\".git/objects\"]").is_err());
    }

    #[test]
    fn limits_below_their_minimum_are_an_error() {
        assert!(
            rules("[commands]\nmax_processes = 1")
                .unwrap_err()
                .contains("invalid configuration: `commands.max_processes = 1` is too low")
        );
        assert_eq!(
            rules("[commands]\nmax_memory_mib = 512").map(|rules| rules.limits.memory),
            Ok(Some(512 << 20))
        );
        assert!(rules("[commands]\nmax_seconds = 0").unwrap_err().contains(
            "invalid configuration: `commands.max_seconds = 0` is too low; use 1 or \
                    more"
        ));
        assert_eq!(
            rules("[commands]\nmax_seconds = 10").map(|rules| rules.limits.seconds),
            Ok(Some(10))
        );
    }
}
