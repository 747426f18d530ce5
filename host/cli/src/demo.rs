//! `cofferdam demo`: a recorded model on a sample project. Only the model is recorded; every tool
//! call is live, in its sandbox, on real files.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::args::{CommonArgs, DemoArgs, ModelArgs, OutputFormat, ToolCallArgs};
use super::context;
use super::error::{CliError, CommandResult};
use super::print::eprint_line;
use cofferdam::agent::ports::LanguageModel;
use cofferdam::model::ReplayModel;
use cofferdam::policy::ApprovalMode;
use cofferdam::sandbox::InstanceAllocation;

const SESSION: &str = include_str!("../demo/session.jsonl");

const FILES: [(&str, &str); 4] = [
    ("README.md", include_str!("../demo/project/README.md")),
    ("docs/prices.txt", include_str!("../demo/project/docs/prices.txt")),
    ("src/fare.sh", include_str!("../demo/project/src/fare.sh")),
    ("test.sh", include_str!("../demo/project/test.sh")),
];

const TASK: &str =
    "Families complain that the fare is too high. Find out why, fix it, and run the test.";

/// Pause between two parts of recorded text, so that it can be read.
const REPLAY_DELAY: Duration = Duration::from_millis(30);

pub(super) fn run(common: &CommonArgs, args: &DemoArgs) -> CommandResult {
    let directory = tempfile::Builder::new().prefix("cofferdam-demo-").tempdir()?;
    write_project(directory.path())?;
    // The recording runs one command, which touches only the sample project, so it is approved in
    // advance.
    let calls = ToolCallArgs { mode: Some(ApprovalMode::Auto), max_parallel: None };
    let common = &CommonArgs { workspace: directory.path().to_owned(), ..common.clone() };
    let context = context::load_context(
        common,
        common.flags(ModelArgs::default(), calls, None),
        InstanceAllocation::Pooled,
    )?;
    context.warn_refused_plugins();
    let host = context.open_host()?;
    let model = ReplayModel::parse(SESSION).map_err(|error| CliError::new(error.to_string()))?;
    let model: Arc<dyn LanguageModel> =
        Arc::new(if args.fast { model } else { model.with_pace(REPLAY_DELAY) });
    eprint_line(&format!(
        "This demo replays recorded responses of a model. The tool calls are real: each runs in a \
            WebAssembly sandbox that sees only\n{}\n\nPrompt: {TASK}\n",
        host.workspace().root().display()
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(super::run::run_request(
        &context,
        &host,
        &model,
        None,
        TASK,
        OutputFormat::Text,
        Vec::new(),
    ));
    runtime.shutdown_background();
    if args.keep {
        eprint_line(&format!("Kept the sample project in {}", directory.keep().display()));
    } else {
        // The undo history is deleted with the files.
        if let Some(history) = host.undo_history() {
            history.delete()?;
        }
    }
    result
}

fn write_project(directory: &Path) -> std::io::Result<()> {
    for (name, text) in FILES {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    // The recorded model tries to read this link, which leads outside the workspace.
    std::os::unix::fs::symlink("/etc/hostname", directory.join("docs/outside"))
}
