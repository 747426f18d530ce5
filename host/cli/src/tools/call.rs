//! `cofferdam tools call`: runs one tool in its sandbox, with the same checks as a call of the
//! model.

use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::args::{CommonArgs, ModelArgs, OutputFormat, ToolCallArgs};
use crate::context;
use crate::dialog::TerminalDialog;
use crate::error::{CliError, CommandResult};
use crate::json_text::json_line;
use crate::print::{eprint_line, print_line, print_text};
use crate::render::EventRenderer;
use crate::{exit, interrupt, stdin};
use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::conversation::ResultStatus;
use cofferdam::sandbox::InstanceAllocation;
use cofferdam::terminal_escape;
use cofferdam::tools::{PluginProvenance, RefusedPlugin, ToolCatalog};

pub(super) fn run(
    common: &CommonArgs,
    name: String,
    input: &str,
    calls: ToolCallArgs,
    as_json: bool,
) -> CommandResult {
    let result = make(common, name.clone(), input, calls, as_json);
    if let (Err(error), true) = (&result, as_json) {
        print_line(&not_made(Some(&name), error.message()));
    }
    result
}

/// Returns the JSON for a call that was not made, with the same fields as any other.
pub(crate) fn not_made(tool: Option<&str>, error: &str) -> String {
    json_line(&serde_json::json!({
        "tool": tool,
        "status": "not-started",
        "content": [],
        "structured": null,
        "error": error,
    }))
}

fn make(
    common: &CommonArgs,
    name: String,
    input: &str,
    calls: ToolCallArgs,
    as_json: bool,
) -> CommandResult {
    let arguments =
        if input == "-" { stdin::read_text("the input of the tool")? } else { input.to_owned() };
    let context = context::load_context(
        common,
        common.flags(ModelArgs::default(), calls, None),
        InstanceAllocation::OnDemand,
    )?;
    context.check_named_plugins()?;
    context.warn_refused_plugins();
    check_not_refused(common, context.catalog(), &name)?;
    let dialog = TerminalDialog::open(
        &Arc::new(EventRenderer::new(OutputFormat::Json, None)),
        context.commands(),
    );
    let host = context.open_host()?.with_approver(dialog);
    // The call has a thread of its own; this one drives it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let cancel = CancellationToken::new();
        interrupt::watch_signals(cancel.clone(), None)?;
        Ok::<_, CliError>(host.call_tool_until(&name, arguments, &CallProgress, &cancel).await?)
    })?;
    runtime.shutdown_background();
    if as_json {
        let all = serde_json::json!({
            "tool": name,
            "status": outcome.result.status,
            "content": outcome.result.content,
            "structured": outcome.structured,
            "error": null,
        });
        print_line(&json_line(&all));
    } else {
        print_result(&outcome.text(), outcome.status());
    }
    Ok(if outcome.status() == ResultStatus::Ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::FAILURE)
    })
}

/// Returns an error if the tool belongs to a refused plugin, so that no other tool is called
/// instead.
fn check_not_refused(
    common: &CommonArgs,
    catalog: &ToolCatalog,
    name: &str,
) -> Result<(), CliError> {
    let is_known = catalog.find(name).is_some();
    let is_named = |refused: &RefusedPlugin| {
        matches!(
            &refused.origin,
            PluginProvenance::File(path) if common.plugins.contains(path)
        )
    };
    let refused = catalog.refused_plugins().iter().find(|refused| {
        let has_tool = refused.tools.iter().any(|tool| tool.eq_ignore_ascii_case(name));
        // Of a plugin that the policy does not allow no tool is known.
        has_tool && (!is_known || is_named(refused))
            || !is_known && refused.tools.is_empty() && is_named(refused)
    });
    match refused {
        Some(refused) => {
            let name = terminal_escape::escape_line(name, 64);
            let problem = format!(
                "cannot call `{name}`, because plugin {} cannot be used: {}",
                refused.origin, refused.reason
            );
            Err(CliError::configuration(terminal_escape::escape_line(&problem, 600)))
        }
        None => Ok(()),
    }
}

/// A result goes to standard output as it is, unless that is a terminal; an error goes to standard
/// error.
fn print_result(text: &str, status: ResultStatus) {
    use std::io::IsTerminal as _;
    if status.is_error() {
        return eprint_line(&terminal_escape::escape_text(text));
    }
    let text = if std::io::stdout().is_terminal() {
        terminal_escape::escape_text(text)
    } else {
        text.to_owned()
    };
    print_text(&text);
    if !text.ends_with('\n') {
        print_text("\n");
    }
}

/// Prints the progress messages of a call.
struct CallProgress;

impl Observer for CallProgress {
    fn observe(&self, event: &AgentEvent<'_>) {
        match event {
            AgentEvent::CallProgress { message, .. } => {
                eprint_line(&terminal_escape::escape_line(message, 200));
            }
            AgentEvent::Notice(text) => context::warn(text),
            _ => {}
        }
    }
}
