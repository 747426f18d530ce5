//! `cofferdam demo`: a recorded model on a sample project. Only the model is recorded; every tool call is live, in its
//! sandbox, on files that are really there.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::args::{CallArgs, Common, DemoArgs, ModelArgs, Output};
use super::assemble;
use super::error::{CliError, Done};
use super::print::stderr_line;
use crate::agent::ports::Model;
use crate::model::Replay;
use crate::policy::Mode;
use crate::sandbox::{Allocation, History};

const SESSION: &str = include_str!("../../demo/session.jsonl");

const FILES: [(&str, &str); 4] = [
    ("README.md", include_str!("../../demo/project/README.md")),
    ("docs/prices.txt", include_str!("../../demo/project/docs/prices.txt")),
    ("src/fare.sh", include_str!("../../demo/project/src/fare.sh")),
    ("test.sh", include_str!("../../demo/project/test.sh")),
];

const TASK: &str = "Families complain that the fare is too high. Find out why, mend it, and check it.";

/// Between two pieces of recorded text, so that it can be read.
const PACE: Duration = Duration::from_millis(30);

pub(super) fn run(common: &Common, args: &DemoArgs) -> Done {
    let folder = tempfile::Builder::new().prefix("cofferdam-demo-").tempdir()?;
    write_project(folder.path())?;
    // The one command of the recording works on the sample project alone, so it is approved beforehand.
    let calls = CallArgs { mode: Some(Mode::Auto), max_parallel: None };
    let common = &Common { workspace: folder.path().to_owned(), ..common.clone() };
    let parts = assemble::parts(common, common.flags(ModelArgs::default(), calls, None), Allocation::Pooled)?;
    parts.warn_of_refused();
    let workspace = parts.workspace(folder.path())?;
    let model = Replay::parse(SESSION).map_err(|error| CliError::new(error.to_string()))?;
    let model: Arc<dyn Model> = Arc::new(if args.fast { model } else { model.paced(PACE) });
    stderr_line(&format!(
        "The model of this demo is a recording; its tool calls are live, each in a WebAssembly sandbox that sees only\n{}\n\nTask: {TASK}\n",
        workspace.root().display()
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(super::run::request(&parts, &workspace, &model, None, TASK, Output::Text, Vec::new()));
    runtime.shutdown_background();
    if args.keep {
        stderr_line(&format!("The sample project is kept in {}", folder.keep().display()));
    } else {
        // What could be undone goes with the files.
        History::of(&parts.folders.undo(), &workspace).forget()?;
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
