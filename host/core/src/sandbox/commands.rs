//! The `commands` interface. The guest proposes a command line, the gate decides on exactly that
//! line, and exactly that line runs.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tracing::debug;

use super::call_state::not_granted;
use super::clock::CallClock;
use super::command_changes::{
    CommandChange, CommandChangeContext, SettleError, SettledCommand, is_zero,
};
use super::contract::v0_2::commands as wit;
use super::egress::{CommandConnection, ConnectionRules, EgressProxy};
use super::gate::{ConnectionJudge, Gate, GateRuling};
use super::listed_files::{ListedChange, ListedFiles};
use super::workspace::path_denied;
use crate::policy::{
    BuiltInList, CommandNetwork, ComponentDigest, Denial, DenialCode, Effect, ReadOnlyReason,
    SandboxLevel, WorkspaceAccess, WorkspacePath,
};
use crate::terminal_escape;
use cofferdam_confine::CommandSandbox;
use cofferdam_confine::process::{self, CommandEnding, CommandTimeLimit, ProxyFactory};
use cofferdam_confine::view::ViewUnavailable;

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
    pub(super) changes: CommandChangeContext,
    pub(super) commands: Arc<CommandSandbox>,
    connections: ConnectionJudge,
    /// Bytes of the result of the call.
    output_limit: usize,
}

/// Why a command line cannot run, before anybody is asked about it.
#[derive(Debug)]
pub(super) enum CommandProblem {
    Denied(Denial),
    Invalid(String),
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
    /// The number of changes that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_changes: u64,
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

    /// Checks the line, and returns the working directory.
    pub(super) fn check_line(
        &self,
        line: &str,
        directory: &str,
    ) -> Result<WorkspacePath, CommandProblem> {
        if line.len() > MAX_LINE_LEN || line.contains('\0') {
            return Err(CommandProblem::Invalid(
                "a command line must be at most 128 KiB and contain no NUL byte".into(),
            ));
        }
        let parsed = self.changes.workspace.parse(directory);
        parsed.map_err(|problem| CommandProblem::Denied(path_denied(&problem)))
    }

    /// Returns the proxy for a command line, if the rules list hosts. Other hosts are asked about
    /// through this gate.
    pub(super) fn new_proxy(
        &self,
        line: &str,
        gate: &Gate,
        limit: &CommandTimeLimit,
    ) -> Option<EgressProxy> {
        match &self.commands.rules().network {
            CommandNetwork::Listed(_) => Some(EgressProxy::new(ConnectionRules {
                judge: Arc::clone(&self.connections),
                gate: Arc::clone(gate),
                line: line.to_owned(),
                limit: limit.clone(),
            })),
            CommandNetwork::None | CommandNetwork::All | CommandNetwork::Closed => None,
        }
    }

    /// Returns the time limit that the user set for each command.
    pub(super) fn max_time(&self) -> Option<Duration> {
        self.commands.rules().limits.seconds.map(Duration::from_secs)
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
        let directory = access.check_line(&command.line, &command.directory)?;
        let access = &*access;
        let max_time = access.max_time();
        let CommandAccess { changes: context, commands, output_limit, .. } = access;
        let CommandChangeContext { workspace, gate, .. } = context;
        let requested_timeout = Duration::from_nanos(command.timeout);
        if !TIMEOUTS.contains(&requested_timeout) {
            return Err(wit::CommandError::Invalid(format!(
                "the timeout {} is not valid: use 1 to 600 seconds",
                requested_timeout.as_secs_f64()
            )));
        }
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
        let asked = gate(Effect::Command { line: command.line, directory, background: false });
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
                more_changes: 0,
                connections: Vec::new(),
                changed_files: Vec::new(),
            });
        }
        let shorter = max_time.filter(|most| *most < requested_timeout);
        let timeout = shorter.unwrap_or(requested_timeout);
        let read_only = match permit.workspace_access() {
            WorkspaceAccess::ReadOnly(reason) => Some(reason.clone()),
            WorkspaceAccess::ReadWrite => None,
        };
        let private_view = match level {
            SandboxLevel::Full => commands.private_view(workspace.root()),
            SandboxLevel::Kernel | SandboxLevel::None => Err(ViewUnavailable::Level(level)),
        };
        if let (None, Err(reason), true) = (&read_only, &private_view, context.is_reviewing()) {
            return Err(denied(no_review(reason)));
        }
        let (direct, skipped) = match (&read_only, &private_view) {
            (None, Ok(())) => context.accepted_directories(&commands.rules().direct),
            (Some(_), _) | (None, Err(_)) => (Vec::new(), Vec::new()),
        };
        // In a private view, the changes themselves show which listed files changed.
        let needs_no_scan = level == SandboxLevel::Full
            && direct.is_empty()
            && (read_only.is_some() || private_view.is_ok());
        let mut before = match needs_no_scan {
            true => None,
            false => Some(workspace.scan_listed_files_async().await),
        };
        workspace.links_may_change();
        let mut place = process::CommandWorkspace {
            root: workspace.root(),
            protected: workspace.guard().paths(),
            direct: &direct,
            writes_directly: false,
        };
        debug!(level = level.name(), timeout_s = timeout.as_secs(), "command starts");
        let limit = CommandTimeLimit::new(timeout);
        let proxy = match permit.effect() {
            Effect::Command { line, .. } => access.new_proxy(line, gate, &limit),
            _ => None,
        };
        let starter = proxy.as_ref().map(|proxy| || proxy.starter());
        let starter = starter.as_ref().map(|starter| starter as ProxyFactory<'_>);
        let cancel = clock.cancellation();
        let mut ran_command =
            process::run(permit, place, limit.clone(), cancel, commands, level, starter).await;
        if let Err(process::CommandFailure::ViewNotMounted { permit, source }) = ran_command {
            let reason = source.to_string();
            if context.is_reviewing() {
                return Err(denied(no_review(&reason)));
            }
            before = Some(workspace.scan_listed_files_async().await);
            place.writes_directly = true;
            ran_command =
                process::run(*permit, place, limit, cancel, commands, level, starter).await;
            if let Ok(finished) = &mut ran_command {
                finished
                    .notices
                    .push(format!("the command wrote the workspace directly: {reason}"));
            }
        }
        let connections = proxy.as_ref().map(EgressProxy::finish).unwrap_or_default();
        let refused = describe_refused_connections(&connections);
        if let Some(record) = ran.last_mut() {
            record.connections = connections;
        }
        match ran_command {
            Ok(mut finished) => {
                finished.notices.extend(skipped);
                finished.notices.extend(refused);
                debug!(ending = ?finished.ending, "command ended");
                workspace.links_may_change();
                if finished.changes.is_some() && finished.stderr.contains(CROSS_DEVICE_TEXT) {
                    finished.notices.push(CROSS_DEVICE_HINT.to_owned());
                }
                let mut settled = match finished.changes.take() {
                    Some(changes) => match context.settle(changes).await {
                        Ok(settled) => settled,
                        Err(error) => {
                            if let Some(record) = ran.last_mut() {
                                record.ending = Some(finished.ending);
                            }
                            return Err(error.with_output(&finished));
                        }
                    },
                    None => SettledCommand::default(),
                };
                if let Some(before) = before {
                    let after = workspace.scan_listed_files_async().await;
                    let mut listed = after.changes_since(&before);
                    // The others were written directly, perhaps through a link from elsewhere.
                    let is_known = |path: &str| settled.listed.iter().any(|one| one.path == path);
                    listed.retain(|change| !is_known(&change.path));
                    settled.notices.extend(describe_changes(&listed, &before, &after));
                    settled.listed.extend(listed);
                }
                finished.notices.extend(settled.notices);
                let hint = read_only.and_then(|reason| explain_read_only(&reason, &finished));
                finished.notices.extend(hint);
                let user_limit = shorter.filter(|_| finished.ending == CommandEnding::TimedOut);
                finished.notices.extend(user_limit.map(|most| {
                    format!(
                        "the command was killed at its time limit of {} s (set by \
                            `max_seconds` under [commands] in the configuration)",
                        most.as_secs()
                    )
                }));
                if let Some(record) = ran.last_mut() {
                    record.ending = Some(finished.ending);
                    record.remarks.clone_from(&finished.notices);
                    record.changes = settled.committed;
                    record.more_changes = settled.more_committed;
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

/// Returns the denial of a command whose changes cannot be reviewed.
fn no_review(reason: &impl std::fmt::Display) -> Denial {
    Denial::new(
        DenialCode::NoSandbox,
        format!(
            "`review_changes` under [commands] needs a private view of the workspace, which is not \
                available: {reason}."
        ),
        "The user can remove `review_changes` from the configuration; `cofferdam doctor` shows \
            whether commands have a private view."
            .to_owned(),
    )
}

/// Describes the refused connections of a command, for its result.
pub(super) fn describe_refused_connections(connections: &[CommandConnection]) -> Vec<String> {
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

impl From<CommandProblem> for wit::CommandError {
    fn from(problem: CommandProblem) -> Self {
        match problem {
            CommandProblem::Denied(denial) => denied(denial),
            CommandProblem::Invalid(problem) => Self::Invalid(problem),
        }
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
