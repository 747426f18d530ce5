//! `cofferdam demo`: a recorded model on a sample project. Only the model is recorded; every tool
//! call is live, in its sandbox, on files that are really there.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::args::{CommonArgs, DemoArgs, ModelArgs, OutputFormat, ToolCallArgs};
use super::context;
use super::error::{CliError, CommandResult};
use super::print::eprint_line;
use crate::agent::ports::LanguageModel;
use crate::model::ReplayModel;
use crate::policy::ApprovalMode;
use crate::sandbox::{InstanceAllocation, UndoHistory};

const SESSION: &str = include_str!("../../demo/session.jsonl");

const FILES: [(&str, &str); 4] = [
    ("README.md", include_str!("../../demo/project/README.md")),
    ("docs/prices.txt", include_str!("../../demo/project/docs/prices.txt")),
    ("src/fare.sh", include_str!("../../demo/project/src/fare.sh")),
    ("test.sh", include_str!("../../demo/project/test.sh")),
];

const TASK: &str =
    "Families complain that the fare is too high. Find out why, mend it, and check it.";

/// Between two pieces of recorded text, so that it can be read.
const REPLAY_DELAY: Duration = Duration::from_millis(30);

pub(super) fn run(common: &CommonArgs, args: &DemoArgs) -> CommandResult {
    let folder = tempfile::Builder::new().prefix("cofferdam-demo-").tempdir()?;
    write_project(folder.path())?;
    // The one command of the recording works on the sample project alone, so it is approved
    // beforehand.
    let calls = ToolCallArgs { mode: Some(ApprovalMode::Auto), max_parallel: None };
    let common = &CommonArgs { workspace: folder.path().to_owned(), ..common.clone() };
    let parts = context::load_context(
        common,
        common.flags(ModelArgs::default(), calls, None),
        InstanceAllocation::Pooled,
    )?;
    parts.warn_refused_plugins();
    let workspace = parts.open_workspace(folder.path())?;
    let model = ReplayModel::parse(SESSION).map_err(|error| CliError::new(error.to_string()))?;
    let model: Arc<dyn LanguageModel> =
        Arc::new(if args.fast { model } else { model.with_pace(REPLAY_DELAY) });
    eprint_line(&format!(
        "The model of this demo is a recording; its tool calls are live, each in a WebAssembly \
            sandbox that sees only\n{}\n\nTask: {TASK}\n",
        workspace.root().display()
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(super::run::run_request(
        &parts,
        &workspace,
        &model,
        None,
        TASK,
        OutputFormat::Text,
        Vec::new(),
    ));
    runtime.shutdown_background();
    if args.keep {
        eprint_line(&format!("The sample project is kept in {}", folder.keep().display()));
    } else {
        // What could be undone goes with the files.
        UndoHistory::for_workspace(&parts.user_dirs.undo(), &workspace).delete()?;
    }
    done
}

fn write_project(folder: &Path) -> std::io::Result<()> {
    for (name, text) in FILES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    // For the model to fall over: a link that leads out of the workspace.
    std::os::unix::fs::symlink("/etc/hostname", folder.join("docs/outside"))
}
