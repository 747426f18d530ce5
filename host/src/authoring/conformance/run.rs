//! Running the checks: each call in a workspace of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::case::{Case, Fails, FileContent};
use super::check::{Check, Finding};
use crate::policy::{Code, CommandRules, Decision, Denial, Effect, Grants, Judge, Mode, SandboxLevel, ToolId};
use crate::sandbox::{
    Call, CallReport, Commands, DeclaredTool, Delegated, Failure, Gate, Limits, Notebook, Output, Piece, Plugin, Ruling, Sandbox, Staged,
    Workspace,
};

type Files = BTreeMap<String, FileContent>;
type Input = Map<String, Value>;
type Problem = Option<String>;

const BIG_INPUT: usize = 256 << 10;
const BIG_FILE: usize = 8 << 20;
const SCRIPTS: &str = "ünïcode 漢字 עברית 🦀 e\u{301} \u{200d}\u{feff}\u{1} end";
const FILE_IN_ANOTHER_SCRIPT: &str = "ünï 漢字/ファイル 🦀.txt";

/// Checks all tools of a component. `found` is told of each finding as it comes.
pub async fn conformance(sandbox: &Arc<Sandbox>, plugin: &Arc<Plugin>, cases: &[Case], found: &mut dyn FnMut(Finding)) {
    let bench = Bench { sandbox, plugin };
    for case in cases {
        let (problem, printed) = bench.case(case).await;
        found(Finding { tool: case.tool.clone(), check: Check::Case(case.says.clone()), problem, printed });
    }
    for tool in &plugin.declaration().tools {
        // How it is called so that it works.
        let works = cases.iter().find(|case| case.tool == tool.name && case.fails.is_none());
        for (check, problem) in bench.tool(tool, works).await {
            found(Finding { tool: tool.name.clone(), check, problem, printed: String::new() });
        }
    }
}

struct Bench<'a> {
    sandbox: &'a Arc<Sandbox>,
    plugin: &'a Arc<Plugin>,
}

impl Bench<'_> {
    /// What is wrong, and what the tool printed.
    async fn case(&self, case: &Case) -> (Problem, String) {
        let Some(tool) = self.plugin.declaration().tools.iter().find(|tool| tool.name == case.tool) else {
            return (Some(format!("the component has no tool `{}`", case.tool)), String::new());
        };
        let workspace = match lay_out(&case.files) {
            Ok(workspace) => workspace,
            Err(error) => return (Some(error), String::new()),
        };
        let report = self.call(tool, &case.input, workspace.path(), granted(tool)).await;
        let problem = judged(case, &report).or_else(|| {
            let wrong = |(path, content): (&String, &FileContent)| {
                let is = fs::read(workspace.path().join(path)).ok();
                (is != content.bytes().ok()).then(|| match is {
                    Some(is) => format!("{path} holds {:?} afterwards", String::from_utf8_lossy(&is)),
                    None => format!("{path} is not there afterwards"),
                })
            };
            case.leaves.iter().find_map(wrong)
        });
        (problem, report.log)
    }

    async fn tool(&self, tool: &DeclaredTool, works: Option<&Case>) -> Vec<(Check, Problem)> {
        let mut found = vec![(Check::Declaration, self.declaration(tool).await)];
        let (files, input) = works.map(|case| (case.files.clone(), case.input.clone())).unwrap_or_default();
        if !tool.asks.is_empty() {
            let problem = match self.vary(tool, &files, &input, Grants::default()).await {
                Ok(report) if report.result.is_ok() => Some("it says that it worked".to_owned()),
                other => crashed(other),
            };
            found.push((Check::WithoutGrants, problem));
        }
        for text in properties(tool, false) {
            found.push((Check::UnicodeText, crashed(self.with(tool, &files, &input, &text, SCRIPTS).await)));
            found.push((Check::BigInput, crashed(self.with(tool, &files, &input, &text, &"a b\n".repeat(BIG_INPUT / 4)).await)));
        }
        for path in properties(tool, true) {
            found.extend(self.path(tool, works, &path).await);
        }
        found.push((Check::Cancelled, self.cancelled(tool, &files, &input).await));
        found
    }

    async fn declaration(&self, tool: &DeclaredTool) -> Problem {
        let (plugin, sandbox) = (Arc::clone(self.plugin), Arc::clone(self.sandbox));
        match tokio::task::spawn_blocking(move || plugin.declared_anew(&sandbox)).await {
            Ok(Ok(anew)) if anew == *self.plugin.declaration() => {}
            Ok(Ok(_)) => return Some("the second time it declared something else".into()),
            Ok(Err(error)) => return Some(error.to_string()),
            Err(error) => return Some(error.to_string()),
        }
        let stranger = DeclaredTool { name: format!("not_{}", tool.name), ..tool.clone() };
        match self.vary(&stranger, &Files::new(), &Input::new(), Grants::default()).await {
            Ok(report) if report.result.is_ok() => Some(format!("it answers to the name `{}`", stranger.name)),
            other => crashed(other),
        }
    }

    async fn path(&self, tool: &DeclaredTool, works: Option<&Case>, property: &str) -> Vec<(Check, Problem)> {
        let mut found = Vec::new();
        let (files, input) = works.map(|case| (case.files.clone(), case.input.clone())).unwrap_or_default();
        let named = input.get(property).and_then(Value::as_str).unwrap_or_default();
        // A path that has to be there for the tool to work; one that it creates is another matter.
        if let (Some(works), Some(content)) = (works, files.get(named)) {
            let renamed = Case {
                files: Files::from([(FILE_IN_ANOTHER_SCRIPT.to_owned(), content.clone())]),
                input: set(&input, property, FILE_IN_ANOTHER_SCRIPT),
                leaves: BTreeMap::new(),
                ..works.clone()
            };
            found.push((Check::UnicodePath, self.case(&renamed).await.0));
            let big = Files::from([(named.to_owned(), FileContent::Text("one line\n".repeat(BIG_FILE / 9)))]);
            found.push((Check::BigFile, crashed(self.with(tool, &big, &input, property, named).await)));
            found.push((Check::MissingPath, refused(self.with(tool, &Files::new(), &input, property, "missing/file").await)));
            let directory = Files::from([("directory/file".to_owned(), FileContent::Text("text".into()))]);
            found.push((Check::DirectoryPath, crashed(self.with(tool, &directory, &input, property, "directory").await)));
        }
        found.push((Check::OutsidePath, self.outside(tool, &files, &input, property).await));
        found
    }

    /// The host refuses such a path before the call; here it is handed to the tool all the same.
    async fn outside(&self, tool: &DeclaredTool, files: &Files, input: &Input, property: &str) -> Problem {
        let secret = match tempfile::tempdir() {
            Ok(folder) => folder,
            Err(error) => return Some(error.to_string()),
        };
        let workspace = match lay_out(files) {
            Ok(workspace) => workspace,
            Err(error) => return Some(error),
        };
        let target = secret.path().join("secret");
        let link = workspace.path().join("link");
        if let Err(error) = fs::write(&target, "outside").and_then(|()| std::os::unix::fs::symlink(&target, link)) {
            return Some(error.to_string());
        }
        let report = self.call(tool, &set(input, property, "link"), workspace.path(), granted(tool)).await;
        refused(Ok(report)).or_else(|| (fs::read(&target).ok()? != b"outside").then(|| "it wrote outside of the workspace".to_owned()))
    }

    async fn cancelled(&self, tool: &DeclaredTool, files: &Files, input: &Input) -> Problem {
        let workspace = match lay_out(files) {
            Ok(workspace) => workspace,
            Err(error) => return Some(error),
        };
        let cancel = CancellationToken::new();
        cancel.cancel();
        ended(self.call_until(tool, input, workspace.path(), granted(tool), cancel).await.result)
    }

    async fn with(&self, tool: &DeclaredTool, files: &Files, input: &Input, property: &str, value: &str) -> Result<CallReport, String> {
        self.vary(tool, files, &set(input, property, value), granted(tool)).await
    }

    async fn vary(&self, tool: &DeclaredTool, files: &Files, input: &Input, grants: Grants) -> Result<CallReport, String> {
        let workspace = lay_out(files)?;
        Ok(self.call(tool, input, workspace.path(), grants).await)
    }

    async fn call(&self, tool: &DeclaredTool, input: &Input, workspace: &Path, grants: Grants) -> CallReport {
        self.call_until(tool, input, workspace, grants, CancellationToken::new()).await
    }

    async fn call_until(&self, tool: &DeclaredTool, input: &Input, root: &Path, grants: Grants, cancel: CancellationToken) -> CallReport {
        let workspace = match Workspace::open(root) {
            Ok(workspace) => Arc::new(workspace),
            Err(error) => {
                return CallReport::without_a_run(Failure::Host(error.to_string()));
            }
        };
        let call = Call {
            tool: tool.name.clone(),
            input: Value::Object(input.clone()).to_string(),
            grants,
            limits: Limits::default(),
            workspace,
            gate: nobody(),
            plans: Arc::new(|_| Box::pin(async { Err(not_here()) })),
            commands: no_commands(),
            notebook: Notebook::default(),
            delegation: Arc::new(|_| Box::pin(async { Delegated::Denied(not_here()) })),
            credentials: Vec::new().into(),
            progress: Arc::new(|_| {}),
            cancel,
        };
        let mut report = self.plugin.call(self.sandbox, call).await;
        if let Some(staged) = report.staged.take()
            && let Err(problem) = commit(staged, &tool.name)
        {
            report.result = Err(Failure::Host(problem));
        }
        report
    }
}

/// What a tool writes in a test goes into the workspace of that test, which is nobody's.
fn commit(staged: Staged, tool: &str) -> Result<(), String> {
    let effect = Effect::Write { changes: staged.changes().clone(), confirm: false };
    match Judge::new(Mode::Auto, false).decide(ToolId::new(tool, ""), "{}", effect) {
        Decision::Allow(permit, _) => staged.commit(permit, tool, None).map(drop).map_err(|error| error.to_string()),
        Decision::Ask(_) => Err("nobody can be asked in a test".into()),
        Decision::Deny(denial) => Err(denial.to_string()),
    }
}

/// How commands would run if any did: without finding out what this machine has.
fn no_commands() -> Arc<Commands> {
    let rules = CommandRules { minimum: SandboxLevel::None, at_most: SandboxLevel::None, ..CommandRules::default() };
    Arc::new(Commands::new(PathBuf::new(), rules, PathBuf::new()))
}

/// Nothing runs for a test: whether a command may run is the user's business, not the tool's.
fn nobody() -> Gate {
    Arc::new(|_| Box::pin(async { Ruling::Denied(not_here()) }))
}

fn not_here() -> Denial {
    Denial::fixed(Code::NobodyToAsk, "this is a test of the tool; no effect is allowed in it.")
}

fn granted(tool: &DeclaredTool) -> Grants {
    Grants::for_asked(&tool.asks).0
}

/// A workspace with these files.
fn lay_out(files: &Files) -> Result<tempfile::TempDir, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    for (name, content) in files {
        let path = folder.path().join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, content.bytes().unwrap_or_default())).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(folder)
}

/// The properties of a tool's input that are text; those that are paths, or those that are not.
fn properties(tool: &DeclaredTool, paths: bool) -> Vec<String> {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let is_text = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("string") && schema.get("enum").is_none();
    let is_path = |schema: &Value| schema.get("format").and_then(Value::as_str) == Some("workspace-path");
    properties.filter(|(_, schema)| is_text(schema) && is_path(schema) == paths).map(|(name, _)| name.clone()).collect()
}

fn set(input: &Input, property: &str, value: &str) -> Input {
    let mut input = input.clone();
    input.insert(property.to_owned(), Value::String(value.to_owned()));
    input
}

fn judged(case: &Case, report: &CallReport) -> Problem {
    let (kind, text) = match &report.result {
        Ok(output) => (None, text(output)),
        Err(failure) => (Some(kind(failure)), failure.to_string()),
    };
    let wrong = match (case.fails, kind) {
        (None, Some(_)) => Some(format!("it failed: {text}")),
        (Some(_), None) => Some(format!("it answered {text:?}")),
        (Some(expected), Some(got)) if got != Some(expected) => Some(format!("it failed in another way: {text}")),
        (None, None) | (Some(_), Some(_)) => None,
    };
    let inexact = || case.answers.as_ref().filter(|expected| **expected != text).map(|_| format!("it answered {text:?}"));
    let lacking = || case.with.iter().find(|part| !text.contains(*part)).map(|part| format!("{part:?} is not in {text:?}"));
    wrong.or_else(inexact).or_else(lacking)
}

/// How the tool itself chose to fail, if it did.
fn kind(failure: &Failure) -> Option<Fails> {
    match failure {
        Failure::InvalidInput { .. } => Some(Fails::InvalidInput),
        Failure::NotFound(_) => Some(Fails::NotFound),
        Failure::Denied { .. } => Some(Fails::Denied),
        Failure::ToolTimedOut(_) => Some(Fails::TimedOut),
        Failure::ToolFailed(_) => Some(Fails::Failed),
        Failure::LimitExceeded(_)
        | Failure::Trapped(_)
        | Failure::NotChanged(_)
        | Failure::HalfChanged(_)
        | Failure::BadAnswer(_)
        | Failure::Cancelled
        | Failure::Unavailable(_)
        | Failure::Host(_) => None,
    }
}

/// It may answer, and it may refuse, but in the way of a tool.
fn crashed(report: Result<CallReport, String>) -> Problem {
    match report {
        Err(problem) => Some(problem),
        Ok(report) => match report.result {
            Err(failure) if kind(&failure).is_none() => Some(failure.to_string()),
            Ok(_) | Err(_) => None,
        },
    }
}

/// It was stopped: it may have been through by then, with an answer or with a failure of its own, but nothing else.
fn ended(result: Result<Output, Failure>) -> Problem {
    match result {
        Ok(_) | Err(Failure::Cancelled) => None,
        Err(failure) => kind(&failure).is_none().then(|| failure.to_string()),
    }
}

/// It has to refuse, in the way of a tool.
fn refused(report: Result<CallReport, String>) -> Problem {
    match report {
        Ok(CallReport { result: Ok(output), .. }) => Some(format!("it answered {:?}", text(&output))),
        other => crashed(other),
    }
}

fn text(output: &Output) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Image { media_type, .. } => format!("[{media_type}]"),
    };
    output.content.iter().map(piece).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_stopped_may_fail_in_its_own_way_and_in_no_other() {
        let table = [
            (Failure::Cancelled, true),
            (Failure::ToolFailed("there is no file".into()), true),
            (Failure::NotFound("a.txt".into()), true),
            (Failure::InvalidInput { pointer: "/path".into(), message: "empty".into() }, true),
            (Failure::Trapped("unreachable".into()), false),
            (Failure::LimitExceeded("it ran longer than its 60 seconds".into()), false),
            (Failure::BadAnswer("no text".into()), false),
        ];
        for (failure, is_fine) in table {
            assert_eq!(ended(Err(failure.clone())).is_none(), is_fine, "{failure}");
        }
    }
}
