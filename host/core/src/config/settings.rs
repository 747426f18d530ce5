//! The settings of a run, resolved from all sources.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;

use super::bounds::SettingOrigins;
use super::commands::{self, InvalidCommands};
use super::presets::{NetworkPreset, PresetHosts, PresetSearch};
use super::raw::{ConfigError, RawApi, RawConfig, RawCredential};
use super::servers::ServerSettings;
use super::timeout::{InvalidTimeout, RequestTimeout};
use crate::agent::{
    InterventionSettings, InvalidParallelLimit, InvalidTurnLimit, ParallelLimit, ReorderPolicy,
    TurnLimit,
};
use crate::policy::{ApprovalMode, ChosenCaps, CommandNetwork, CommandRules, PolicyProfile};

/// The settings that were given on the command line.
#[derive(Clone, Debug, Default)]
pub struct SettingsFlags {
    /// The value of `--model`.
    pub model: Option<String>,
    /// The value of `--base-url`.
    pub base_url: Option<String>,
    /// The value of `--mode`.
    pub mode: Option<ApprovalMode>,
    /// The value of `--max-tool-iterations`.
    pub max_tool_iterations: Option<TurnLimit>,
    /// The value of `--timeout`.
    pub timeout: Option<RequestTimeout>,
    /// The value of `--max-parallel`.
    pub max_parallel: Option<ParallelLimit>,
    /// The value of `--profile`.
    pub profile: Option<PolicyProfile>,
    /// The values of `--plugin`, which can be repeated.
    pub plugins: Vec<PathBuf>,
}

/// The resolved settings of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunSettings {
    /// The chosen model; `None` selects any model that is available.
    pub model: Option<String>,
    /// The approval mode, which decides which calls need approval.
    pub mode: ApprovalMode,
    /// The built-in policy profile, if one was chosen here.
    pub profile: Option<PolicyProfile>,
    /// The configured caps of calls.
    pub caps: ChosenCaps,
    /// The limit on turns with tool calls in one request.
    pub turn_limit: TurnLimit,
    /// The limit on the active time of one request.
    pub time_limit: Option<Duration>,
    /// The notes that the host may send to the model.
    pub interventions: InterventionSettings,
    /// Whether a repeated call with the same result gets a remark.
    pub repetition_notice: bool,
    /// The maximum number of parallel calls.
    pub max_parallel: ParallelLimit,
    /// The rule for moving reads ahead of writes.
    pub reorder: ReorderPolicy,
    /// Components to load in addition to the built-in ones.
    pub plugins: Vec<PathBuf>,
    /// The access to the model.
    pub provider: ProviderSettings,
    /// The sandbox and the limits of approved commands.
    pub commands: CommandRules,
    /// The presets of `[commands.network]`.
    pub network_presets: Vec<NetworkPreset>,
    /// The hosts of the presets on this machine; empty before [`with_presets`](Self::with_presets).
    pub preset_hosts: Vec<PresetHosts>,
    /// The settings of the audit log.
    pub audit: AuditSettings,
    /// Secrets for requests of tools, by the host name they are for.
    pub credentials: BTreeMap<String, RawCredential>,
    /// The MCP servers whose tools the model can call.
    pub servers: Vec<ServerSettings>,
    /// The origins of the settings that a policy can override.
    pub origins: SettingOrigins,
}

/// The settings of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditSettings {
    /// Whether the audit log is written.
    pub enabled: bool,
    /// Whether an action is refused if it cannot be recorded.
    pub required: bool,
}

/// The settings for access to the model.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProviderSettings {
    /// The address of the API, in place of the provider's own.
    pub base_url: Option<String>,
    /// The context window, in tokens.
    pub context_window: Option<u64>,
    /// The limit on output tokens of each response.
    pub max_output: Option<u64>,
    /// The reasoning effort, in the provider's terms.
    pub reasoning_effort: Option<String>,
    /// The API format, if one was chosen.
    pub api: Option<RawApi>,
    /// Allows an unencrypted connection to another machine, which exposes the API key.
    pub allow_plain_http: bool,
    /// The longest wait for the start of a response.
    pub first_event_timeout: Option<Duration>,
    /// The longest wait for the next event of a response.
    pub idle_timeout: Option<Duration>,
}

/// The reason why the settings of a run are invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// `COFFERDAM_MAX_PARALLEL` is out of range.
    #[error("COFFERDAM_MAX_PARALLEL: {0}")]
    ParallelVariable(InvalidParallelLimit),
    /// `dispatch.max_parallel` is out of range.
    #[error("`dispatch.max_parallel` in the configuration: {0}")]
    ParallelKey(InvalidParallelLimit),
    /// `max_tool_iterations` is out of range.
    #[error("`max_tool_iterations` in the configuration: {0}")]
    TurnsKey(InvalidTurnLimit),
    /// `timeout_seconds` is out of range.
    #[error("`timeout_seconds` in the configuration: {0}")]
    TimeoutKey(InvalidTimeout),
    /// The `[mcp]` section is invalid.
    #[error(transparent)]
    Servers(#[from] ConfigError),
    /// The `[commands]` section is invalid.
    #[error(transparent)]
    Commands(#[from] InvalidCommands),
    /// The `[audit]` section both requires the log and switches it off.
    #[error(
        "[audit] in the configuration: a required log cannot be disabled; remove `enabled = \
            false` or `required = true`"
    )]
    AuditRequiredButOff,
    /// A timeout in `[provider]` is zero; the value is its key.
    #[error(
        "`provider.{0}` in the configuration: a timeout of 0 seconds is too short; use 1 or \
        more"
    )]
    ZeroTimeout(&'static str),
}

impl RunSettings {
    /// Allows the hosts of the presets. Reads files of the user and of the system, if there are
    /// presets.
    #[must_use]
    pub fn with_presets(mut self, search: &PresetSearch) -> Self {
        self.preset_hosts =
            self.network_presets.iter().map(|preset| preset.find_hosts(search)).collect();
        let hosts = self.preset_hosts.iter().flat_map(|found| found.hosts.keys().cloned());
        let hosts: Vec<String> = hosts.collect();
        if let CommandNetwork::Listed(rules) = &mut self.commands.network
            // Presets find single hosts, which are patterns.
            && let Ok(with_hosts) = rules.clone().with_allow(&hosts)
        {
            *rules = with_hosts;
        }
        self
    }

    /// Combines all sources in their order of precedence.
    ///
    /// # Errors
    /// A value is out of range, or two values contradict each other.
    pub fn resolve(
        flags: SettingsFlags,
        env: impl Fn(&str) -> Option<String>,
        raw: RawConfig,
    ) -> Result<Self, SettingsError> {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let parallel_env = env("COFFERDAM_MAX_PARALLEL")
            .map(|v| v.parse())
            .transpose()
            .map_err(SettingsError::ParallelVariable)?;
        let parallel_key = raw
            .dispatch
            .max_parallel
            .map(ParallelLimit::new)
            .transpose()
            .map_err(SettingsError::ParallelKey)?;
        let turns_key = raw
            .max_tool_iterations
            .map(TurnLimit::new)
            .transpose()
            .map_err(SettingsError::TurnsKey)?;
        let timeout_key = raw
            .timeout_seconds
            .map(RequestTimeout::new)
            .transpose()
            .map_err(SettingsError::TimeoutKey)?;
        let is_set = |value: &Option<Spanned<bool>>, default: bool| {
            value.as_ref().map_or(default, |value| *value.get_ref())
        };
        let audit = AuditSettings {
            enabled: is_set(&raw.audit.enabled, true),
            required: is_set(&raw.audit.required, false),
        };
        let origins = SettingOrigins::from_sources(&raw, &flags, env);
        if audit.required && !audit.enabled {
            return Err(SettingsError::AuditRequiredButOff);
        }
        Ok(Self {
            network_presets: raw
                .commands
                .network
                .as_ref()
                .map(|network| network.get_ref().presets().to_vec())
                .unwrap_or_default(),
            preset_hosts: Vec::new(),
            commands: commands::resolve(raw.commands.clone(), &|span| raw.location(span))?,
            audit,
            origins,
            caps: raw.caps(),
            servers: raw.servers()?,
            credentials: raw.credentials,
            profile: flags.profile.or(raw.profile),
            model: flags
                .model
                .or_else(|| env("COFFERDAM_MODEL"))
                .or(raw.model.map(Spanned::into_inner)),
            mode: flags.mode.or(raw.mode.map(Spanned::into_inner)).unwrap_or_default(),
            turn_limit: flags.max_tool_iterations.or(turns_key).unwrap_or_default(),
            time_limit: flags.timeout.or(timeout_key).map(RequestTimeout::get),
            interventions: raw.interventions.resolve(),
            repetition_notice: raw.interventions.repetition.unwrap_or(true),
            max_parallel: flags
                .max_parallel
                .or(parallel_env)
                .or(parallel_key)
                .unwrap_or_else(ParallelLimit::detect),
            reorder: raw.dispatch.reorder.unwrap_or_default(),
            plugins: raw.plugins.into_iter().chain(flags.plugins).collect(),
            provider: ProviderSettings {
                base_url: flags
                    .base_url
                    .or_else(|| env("COFFERDAM_BASE_URL"))
                    .or(raw.provider.base_url.map(Spanned::into_inner)),
                context_window: raw.provider.context_window,
                max_output: raw.provider.max_output,
                reasoning_effort: raw.provider.reasoning_effort,
                api: raw.provider.api,
                allow_plain_http: raw.provider.allow_plain_http,
                first_event_timeout: parse_timeout(
                    "first_event_timeout_seconds",
                    raw.provider.first_event_timeout_seconds,
                )?,
                idle_timeout: parse_timeout(
                    "idle_timeout_seconds",
                    raw.provider.idle_timeout_seconds,
                )?,
            },
        })
    }
}

fn parse_timeout(
    key: &'static str,
    seconds: Option<u64>,
) -> Result<Option<Duration>, SettingsError> {
    match seconds {
        Some(0) => Err(SettingsError::ZeroTimeout(key)),
        seconds => Ok(seconds.map(Duration::from_secs)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn resolve(
        flags: SettingsFlags,
        env: &[(&str, &str)],
        file: &str,
    ) -> Result<RunSettings, String> {
        let raw = RawConfig::parse(file, Path::new("config.toml"), None).expect("it parses");
        let lookup = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        RunSettings::resolve(flags, lookup, raw).map_err(|error| error.to_string())
    }

    #[test]
    fn r017_flag_wins_over_environment_file_and_default() {
        let file = "[dispatch]\nmax_parallel = 3";
        let env = [("COFFERDAM_MAX_PARALLEL", "2")];
        let flags =
            SettingsFlags { max_parallel: ParallelLimit::new(1).ok(), ..SettingsFlags::default() };
        assert_eq!(resolve(flags, &env, file).map(|s| s.max_parallel.get()), Ok(1));
        assert_eq!(
            resolve(SettingsFlags::default(), &env, file).map(|s| s.max_parallel.get()),
            Ok(2)
        );
        assert_eq!(
            resolve(SettingsFlags::default(), &[], file).map(|s| s.max_parallel.get()),
            Ok(3)
        );
        assert_eq!(
            resolve(SettingsFlags::default(), &[], "").map(|s| s.max_parallel),
            Ok(ParallelLimit::detect())
        );
    }

    #[test]
    fn r018_an_invalid_limit_names_its_source() {
        let from_env = resolve(SettingsFlags::default(), &[("COFFERDAM_MAX_PARALLEL", "0")], "");
        assert!(from_env.unwrap_err().starts_with("COFFERDAM_MAX_PARALLEL: `0`"));
        let from_file = resolve(SettingsFlags::default(), &[], "[dispatch]\nmax_parallel = 0");
        assert!(from_file.unwrap_err().starts_with("`dispatch.max_parallel`"));
    }

    #[test]
    fn the_audit_log_is_on_by_default_and_cannot_be_required_and_off() {
        let audit = |file| {
            resolve(SettingsFlags::default(), &[], file)
                .map(|s| (s.audit.enabled, s.audit.required))
        };
        assert_eq!(audit(""), Ok((true, false)));
        assert_eq!(audit("[audit]\nrequired = true"), Ok((true, true)));
        assert_eq!(audit("[audit]\nenabled = false"), Ok((false, false)));
        assert!(
            audit("[audit]\nenabled = false\nrequired = true")
                .unwrap_err()
                .contains("cannot be disabled")
        );
    }

    #[test]
    fn r095_caps_are_chosen_for_all_tools_and_for_one() {
        use crate::policy::CapName;
        let file = "[limits]\nseconds = 30\n[tools.grep.limits]\nshown_bytes = 2000";
        let caps = resolve(SettingsFlags::default(), &[], file)
            .map(|settings| settings.caps)
            .expect("it resolves");
        assert_eq!(
            (caps.defaults.get(CapName::Seconds), caps.defaults.get(CapName::ShownBytes)),
            (Some(30), None)
        );
        let grep = caps.for_tool("grep");
        assert_eq!(
            (grep.get(CapName::Seconds), grep.get(CapName::ShownBytes)),
            (Some(30), Some(2000))
        );
    }

    #[test]
    fn r086_timeouts_are_configurable_and_not_zero() {
        let provider = |file| {
            resolve(SettingsFlags::default(), &[], file)
                .map(|s| (s.provider.first_event_timeout, s.provider.idle_timeout))
        };
        let both = "[provider]\nfirst_event_timeout_seconds = 300\nidle_timeout_seconds = 5";
        assert_eq!(
            provider(both),
            Ok((Some(Duration::from_secs(300)), Some(Duration::from_secs(5))))
        );
        assert!(
            provider("[provider]\nidle_timeout_seconds = 0")
                .unwrap_err()
                .starts_with("`provider.idle_timeout_seconds`")
        );
    }

    #[test]
    fn r004_the_cap_on_turns_has_a_default_a_key_and_a_flag() {
        let turns = |flags, file| resolve(flags, &[], file).map(|s| s.turn_limit.to_string());
        assert_eq!(turns(SettingsFlags::default(), ""), Ok("40".into()));
        assert_eq!(turns(SettingsFlags::default(), "max_tool_iterations = 7"), Ok("7".into()));
        let flags = SettingsFlags {
            max_tool_iterations: TurnLimit::new(3).ok(),
            ..SettingsFlags::default()
        };
        assert_eq!(turns(flags, "max_tool_iterations = 7"), Ok("3".into()));
        assert!(turns(SettingsFlags::default(), "max_tool_iterations = 0").is_err());
    }
}
