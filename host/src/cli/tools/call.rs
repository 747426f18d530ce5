//! `cofferdam tools call`: one tool in its sandbox, by the same road as a model's call.

use std::process::ExitCode;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::agent::events::{Event, Observer};
use crate::agent::ports::Tools as _;
use crate::cli::args::{CallArgs, Common, ModelArgs, Output};
use crate::cli::assemble;
use crate::cli::dialog::TerminalDialog;
use crate::cli::error::{CliError, Done};
use crate::cli::print::{stderr_line, stdout_line, stdout_piece};
use crate::cli::render::Renderer;
use crate::cli::{audit, exit, interrupt, stdin};
use crate::conversation::{AnsweredCall, Call, CallId, OpenTurn, Response, ResponseBlock, ResultStatus};
use crate::sandbox::Allocation;
use crate::shown;

pub(super) fn run(common: &Common, name: String, input: &str, calls: CallArgs, as_json: bool) -> Done {
    let result = make(common, name.clone(), input, calls, as_json);
    if let (Err(error), true) = (&result, as_json) {
        stdout_line(&not_made(Some(&name), error.message()));
    }
    result
}

/// The line for a call that was not made: it has the same fields as that of any other.
pub(in crate::cli) fn not_made(tool: Option<&str>, error: &str) -> String {
    shown::json(&serde_json::json!({"tool": tool, "status": "not-started", "content": [], "error": error}).to_string())
}

fn make(common: &Common, name: String, input: &str, calls: CallArgs, as_json: bool) -> Done {
    let arguments = if input == "-" { stdin::read_text("the input of the tool")? } else { input.to_owned() };
    let parts = assemble::parts(common, common.flags(ModelArgs::default(), calls, None), Allocation::OnDemand)?;
    parts.stop_for_broken()?;
    let workspace = parts.workspace(&common.workspace)?;
    // The call has a thread of its own; this one drives it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answered = runtime.block_on(async {
        let dialog = TerminalDialog::at_this_terminal(&Arc::new(Renderer::new(Output::Json, None)), &parts.commands);
        let audit = audit::begin(&parts, &workspace, None, None, parts.settings.mode, |text| stderr_line(&shown::line(text, 400)))?;
        let dispatcher = parts.dispatcher(&workspace, Arc::new(parts.approvals(dialog, audit.as_ref())), None);
        let cancel = CancellationToken::new();
        interrupt::watch(cancel.clone(), None)?;
        let call = Call { id: CallId::new("call_1"), name, arguments };
        let response = Response { blocks: vec![ResponseBlock::Call(call)], ..Response::default() };
        let mut turn = OpenTurn::new(response).map_err(|_| CliError::new("there is no call to make"))?;
        dispatcher.run(&mut turn, &Progress, &cancel).await;
        Ok::<_, CliError>(turn.close("the call was stopped"))
    })?;
    runtime.shutdown_background();
    let Some(AnsweredCall { call, result }) = answered.calls().next() else {
        return Err(CliError::new("the call has no result"));
    };
    if as_json {
        let all = serde_json::json!({"tool": call.name, "status": result.status, "content": result.content, "error": null});
        stdout_line(&shown::json(&all.to_string()));
    } else {
        show(&result.text(), result.status);
    }
    Ok(if result.status == ResultStatus::Ok { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// A result goes to standard output as it is, unless that is a terminal; an error goes to standard error.
fn show(text: &str, status: ResultStatus) {
    use std::io::IsTerminal as _;
    if status.is_error() {
        return stderr_line(&shown::block(text));
    }
    let text = if std::io::stdout().is_terminal() { shown::block(text) } else { text.to_owned() };
    stdout_piece(&text);
    if !text.ends_with('\n') {
        stdout_piece("\n");
    }
}

/// Shows how far a call is.
struct Progress;

impl Observer for Progress {
    fn observe(&self, event: &Event<'_>) {
        if let Event::CallProgress { message, .. } = event {
            stderr_line(&shown::line(message, 200));
        }
    }
}
