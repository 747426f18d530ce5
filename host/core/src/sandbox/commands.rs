//! The `commands` interface. The guest proposes a command line, the gate decides on exactly that
//! line, and exactly that line runs.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tracing::debug;

use super::call_state::not_granted;
use super::clock::CallClock;
use super::command_changes::{CommandChange, CommandChangeContext, SettleError, SettledCommand};
use super::contract::v0_2::commands as wit;
use super::egress::{CommandConnection, ConnectionRules, EgressProxy};
use super::gate::{ConnectionJudge, GateRuling};
use super::listed_files::{ListedChange, ListedFiles};
use super::workspace::path_denied;
use crate::policy::{
    BuiltInList, CommandNetwork, ComponentDigest, Denial, DenialCode, Effect, ReadOnlyReason,
    SandboxLevel, WorkspaceAccess,
};
use crate::terminal_escape;
use cofferdam_confine::CommandSandbox;
use cofferdam_confine::process::{self, CommandEnding, CommandTimeLimit, ProxyFactory};

/// The longest command line, 128 KiB by the WIT contract. Linux accepts no longer argument.
const MAX_LINE_LEN: usize = 128 << 10;
/// The range of timeouts of the WIT contract.
const TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(600);

/// The number of commands per call. The host keeps a record of each.
const MAX_COMMANDS: usize = 1000;

/// The host's state of the `commands` interface for one call.
pub(super) struct CommandsHost {
    /// `None` without the permission to run commands.
    access: Option<CommandAccess>,
    pub(super) records: Vec<RanCommand>,
    clock: Arc<CallClock>,
}

/// What running a command takes.
pub(super) struct CommandAccess {
    changes: CommandChangeContext,
    commands: Arc<CommandSandbox>,
    connections: ConnectionJudge,
    /// Bytes of the result of the call.
    output_limit: usize,
}

/// The audit record of a command that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RanCommand {
    /// The SHA-256 digest of the exact command line.
    pub line_sha256: ComponentDigest,
    /// The sandbox that the command ran in.
    pub level: SandboxLevel,
    /// How the command ended; `None` if it was stopped with its call or did not start.
    pub ending: Option<CommandEnding>,
    /// What the host did about changes of protected paths, and which listed files the command
    /// changed.
    pub remarks: Vec<String>,
    /// The changes that the command made to the workspace; empty if it wrote the workspace
    /// directly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<CommandChange>,
    /// The connections that the command asked the proxy for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<CommandConnection>,
    /// The instruction files and the files that run code that the command changed.
    #[serde(skip)]
    pub changed_files: Vec<ListedChange>,
}

/// The bytes of output in the error of a command whose changes were discarded.
const MAX_FAILED_OUTPUT_LEN: usize = 4 << 10;

/// What programs print if a private view cannot rename a directory.
const CROSS_DEVICE_TEXT: &str = "cross-device link";
const CROSS_DEVICE_HINT: &str = "a program cannot rename a directory that existed before the \
    command; `mv` copies it instead";

/// The number of refused connections that the result of a command names.
const MAX_REFUSED_CONNECTIONS: usize = 20;
/// The characters of a host that are shown.
const MAX_HOST_LEN: usize = 200;

/// What programs print if they cannot write: at the level `full`, and at the level `kernel`.
const READ_ONLY_TEXTS: [&str; 2] = ["ead-only file system", "ermission denied"];

/// Changed files that are named in the result of a command.
const MAX_LISTED_CHANGES: usize = 40;

impl CommandsHost {
    pub(super) fn new(access: Option<CommandAccess>, clock: &Arc<CallClock>) -> Self {
        Self { access, records: Vec::new(), clock: Arc::clone(clock) }
    }
}

impl CommandAccess {
    pub(super) fn new(
        changes: CommandChangeContext,
        commands: &Arc<CommandSandbox>,
        connections: &ConnectionJudge,
        output_limit: usize,
    ) -> Self {
        let (commands, connections) = (Arc::clone(commands), Arc::clone(connections));
        Self { changes, commands, connections, output_limit }
    }
}

impl wit::Host for CommandsHost {
    async fn run(
        &mut self,
        command: wit::Command,
    ) -> Result<wit::CommandOutput, wit::CommandError> {
        let Self { access: Some(access), records: ran, clock } = self else {
            return Err(denied(not_granted("run commands", "run-commands")));
        };
        let CommandAccess { changes: context, commands, connections, output_limit } = access;
        let CommandChangeContext { workspace, gate, .. } = context;
        if command.line.len() > MAX_LINE_LEN || command.line.contains('\0') {
            return Err(wit::CommandError::Invalid(
                "a command line must be at most 128 KiB and contain no NUL byte".into(),
            ));
        }
        let requested_timeout = Duration::from_nanos(command.timeout);
        if !TIMEOUTS.contains(&requested_timeout) {
            return Err(wit::CommandError::Invalid(format!(
                "the timeout {} is not valid: use 1 to 600 seconds",
                requested_timeout.as_secs_f64()
            )));
        }
        let directory =
            workspace.parse(&command.directory).map_err(|problem| denied(path_denied(&problem)))?;
        // A person may take as long as they like, and a command has a limit of its own.
        let _waiting = clock.pause();
        if ran.len() >= MAX_COMMANDS {
            return Err(denied(Denial::without_remedy(
                DenialCode::TooMany,
                format!("one call can run at most {MAX_COMMANDS} commands."),
            )));
        }
        // Nobody is asked about what will not run.
        let level = commands.allowed_level().map_err(denied)?;
        let asked = gate(Effect::Command { line: command.line, directory });
        let permit = match asked.await {
            GateRuling::Permitted(permit) => permit,
            GateRuling::Denied(denial) => return Err(denied(denial)),
        };
        if let Effect::Command { line, .. } = permit.effect() {
            // Now, since the call may end before the command does.
            let line_sha256 = ComponentDigest::compute(line.as_bytes());
            ran.push(RanCommand {
                line_sha256,
                level,
                ending: None,
                remarks: Vec::new(),
                changes: Vec::new(),
                connections: Vec::new(),
                changed_files: Vec::new(),
            });
        }
        let shorter = commands
            .rules()
            .limits
            .seconds
            .filter(|most| Duration::from_secs(*most) < requested_timeout);
        let timeout = shorter.map_or(requested_timeout, Duration::from_secs);
        let read_only = match permit.workspace_access() {
            WorkspaceAccess::ReadOnly(reason) => Some(reason.clone()),
            WorkspaceAccess::ReadWrite => None,
        };
        // In a private view, the changes themselves show which listed files changed.
        let needs_no_scan = level == SandboxLevel::Full
            && (read_only.is_some() || commands.private_view(workspace.root()).is_ok());
        let before = match needs_no_scan {
            true => None,
            false => Some(workspace.scan_listed_files_async().await),
        };
        workspace.links_may_change();
        let place = process::CommandWorkspace {
            root: workspace.root(),
            protected: workspace.guard().paths(),
        };
        debug!(level = level.name(), timeout_s = timeout.as_secs(), "command starts");
        let limit = CommandTimeLimit::new(timeout);
        let proxy = match (&commands.rules().network, permit.effect()) {
            (CommandNetwork::Listed(_), Effect::Command { line, .. }) => {
                Some(EgressProxy::new(ConnectionRules {
                    judge: Arc::clone(connections),
                    gate: Arc::clone(gate),
                    line: line.clone(),
                    limit: limit.clone(),
                }))
            }
            _ => None,
        };
        let starter = proxy.as_ref().map(|proxy| || proxy.starter());
        let starter = starter.as_ref().map(|starter| starter as ProxyFactory<'_>);
        let cancel = clock.cancellation();
        let ran_command =
            process::run(permit, place, limit, cancel, commands, level, starter).await;
        let connections = proxy.as_ref().map(EgressProxy::finish).unwrap_or_default();
        let refused = describe_refused_connections(&connections);
        if let Some(record) = ran.last_mut() {
            record.connections = connections;
        }
        match ran_command {
            Ok(mut finished) => {
                finished.notices.extend(refused);
                debug!(ending = ?finished.ending, "command ended");
                workspace.links_may_change();
                if finished.changes.is_some() && finished.stderr.contains(CROSS_DEVICE_TEXT) {
                    finished.notices.push(CROSS_DEVICE_HINT.to_owned());
                }
                let settled = match finished.changes.take() {
                    Some(changes) => match context.settle(changes).await {
                        Ok(settled) => settled,
                        Err(error) => {
                            if let Some(record) = ran.last_mut() {
                                record.ending = Some(finished.ending);
                            }
                            return Err(error.with_output(&finished));
                        }
                    },
                    None => match before {
                        // The command changed nothing, or the host expected a private view.
                        None => SettledCommand::default(),
                        Some(before) => {
                            let after = workspace.scan_listed_files_async().await;
                            let listed = after.changes_since(&before);
                            let notices = describe_changes(&listed, &before, &after);
                            SettledCommand { notices, listed, committed: Vec::new() }
                        }
                    },
                };
                finished.notices.extend(settled.notices);
                let hint = read_only.and_then(|reason| explain_read_only(&reason, &finished));
                finished.notices.extend(hint);
                let user_limit = shorter.filter(|_| finished.ending == CommandEnding::TimedOut);
                finished.notices.extend(user_limit.map(|most| {
                    format!(
                        "the command was killed at its time limit of {most} s (set by \
                            `max_seconds` under [commands] in the configuration)"
                    )
                }));
                if let Some(record) = ran.last_mut() {
                    record.ending = Some(finished.ending);
                    record.remarks.clone_from(&finished.notices);
                    record.changes = settled.committed;
                    record.changed_files = settled.listed;
                }
                // A tool says of what timed out that it was at the timeout that it gave itself.
                if user_limit.is_some() {
                    finished.ending = CommandEnding::Killed(rustix::process::Signal::KILL.as_raw());
                }
                shorten_output(&mut finished, *output_limit);
                Ok(finished.into())
            }
            Err(process::CommandFailure::Cancelled) => Err(denied(Denial::without_remedy(
                DenialCode::Cancelled,
                "the user cancelled the request.",
            ))),
            Err(failed) => Err(wit::CommandError::Failed(failed.to_string())),
        }
    }
}

/// Describes the refused connections of a command, for its result.
fn describe_refused_connections(connections: &[CommandConnection]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for connection in connections {
        let Some(reason) = &connection.refused else { continue };
        let host = terminal_escape::escape_line(&connection.host, MAX_HOST_LEN);
        let line = format!("the connection to {host} was refused: {reason}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if let Some(more @ 1..) = lines.len().checked_sub(MAX_REFUSED_CONNECTIONS) {
        lines.truncate(MAX_REFUSED_CONNECTIONS);
        lines.push(format!("{more} more connections were refused"));
    }
    lines
}

/// Explains why a command could not write, if it seems to have tried.
fn explain_read_only(
    reason: &ReadOnlyReason,
    finished: &process::FinishedCommand,
) -> Option<String> {
    let failed = finished.ending != CommandEnding::Exited(0);
    let tried = READ_ONLY_TEXTS.iter().any(|text| finished.stderr.contains(text));
    (failed && tried)
        .then(|| format!("the workspace was read-only for this command, because {reason}"))
}

/// Describes the listed files that a command changed, for its result.
fn describe_changes(
    changed: &[ListedChange],
    before: &ListedFiles,
    after: &ListedFiles,
) -> Vec<String> {
    let mut changed: Vec<_> = changed.iter().collect();
    changed.sort_by_key(|change| weight(change));
    let mut lines: Vec<String> = changed
        .iter()
        .take(MAX_LISTED_CHANGES)
        .map(|change| format!("the command {}; review it", change.describe()))
        .collect();
    if let Some(more @ 1..) = changed.len().checked_sub(MAX_LISTED_CHANGES) {
        lines.push(format!(
            "the command changed {more} more instruction files or files that programs run code from"
        ));
    }
    if after.is_truncated() && !before.is_truncated() {
        lines.push(
            "the workspace has too many files after this command to find every changed instruction \
                file"
                .to_owned(),
        );
    }
    lines
}

/// The order in which changes are named: what agents obey, what git runs, what programs run at the
/// top of the workspace, and the rest, from the outside in.
fn weight(change: &ListedChange) -> (u8, usize, &str) {
    let path = change.path.as_str();
    let is_hook = path.split('/').any(|part| part.to_ascii_lowercase().contains("hook"))
        || path.contains(".husky/");
    let kind = match change.list {
        BuiltInList::Instructions => 0,
        _ if is_hook => 1,
        _ => 2,
    };
    (kind, path.matches('/').count(), path)
}

impl SettleError {
    /// Returns the error of a command whose changes were discarded, with the output of the command.
    fn with_output(self, finished: &process::FinishedCommand) -> wit::CommandError {
        if let Self::Rejected(denial) = self {
            return denied(denial);
        }
        let ending = match finished.ending {
            CommandEnding::Exited(code) => format!("exit code {code}"),
            CommandEnding::Killed(_) | CommandEnding::TimedOut => "killed".to_owned(),
        };
        let mut output = [finished.stdout.as_str(), finished.stderr.as_str()].concat();
        process::shorten(&mut output, MAX_FAILED_OUTPUT_LEN);
        wit::CommandError::Failed(format!(
            "the command ran ({ending}), and all of its changes were discarded: {self}\n{output}"
        ))
    }
}

fn denied(denial: Denial) -> wit::CommandError {
    wit::CommandError::Denied(denial.into())
}

/// Bytes that a tool may say of a command besides its output.
const RESERVED_OUTPUT: usize = 1 << 10;

/// Shortens what the command wrote, so that it fits into a result of `limit` bytes together with
/// the notices.
fn shorten_output(finished: &mut process::FinishedCommand, limit: usize) {
    let notices: usize = finished.notices.iter().map(|notice| notice.len() + 16).sum();
    let most = limit.saturating_sub(notices + RESERVED_OUTPUT);
    let (out, err) = (finished.stdout.len(), finished.stderr.len());
    if out + err > most {
        // What one stream does not need is the other's.
        let half = most / 2;
        process::shorten(&mut finished.stdout, half.max(most.saturating_sub(err)));
        process::shorten(&mut finished.stderr, half.max(most.saturating_sub(out)));
    }
}

impl From<process::FinishedCommand> for wit::CommandOutput {
    fn from(finished: process::FinishedCommand) -> Self {
        let status = match finished.ending {
            process::CommandEnding::Exited(code) => wit::ExitStatus::Exited(code),
            process::CommandEnding::Killed(signal) => wit::ExitStatus::Signaled(signal),
            process::CommandEnding::TimedOut => wit::ExitStatus::TimedOut,
        };
        let mut stderr = finished.stderr;
        for remark in &finished.notices {
            let line_break = if stderr.is_empty() || stderr.ends_with('\n') { "" } else { "\n" };
            stderr.push_str(&format!("{line_break}[sandbox] {remark}\n"));
        }
        let elapsed = u64::try_from(finished.duration.as_nanos()).unwrap_or(u64::MAX);
        Self { status, stdout: finished.stdout, stderr, elapsed }
    }
}
