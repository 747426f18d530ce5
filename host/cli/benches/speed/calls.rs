//! Benchmarks of single tool calls.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cofferdam::policy::{
    ApprovalMode, Authorization, Authorizer, CommandChangeVerdict, ConnectionVerdict, Effect,
    Permit, SandboxLevel, ToolId,
};
use cofferdam::sandbox::{
    CallLimits, CallReport, CommandSandbox, ConnectionDecision, GateRuling, InstanceAllocation,
    LoadedPlugin, PluginCall, ToolState, UndoHistory, WasmSandbox, Workspace,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::folders;
use crate::measure::{Line, against, alone};

/// A sandbox with the built-in plugins loaded and a workspace directory.
pub(crate) struct Bench {
    pub(crate) sandbox: Arc<WasmSandbox>,
    pub(crate) workspace: Arc<Workspace>,
    commands: Arc<CommandSandbox>,
    history: Option<UndoHistory>,
    plugins: Vec<(&'static str, Arc<LoadedPlugin>)>,
}

impl Bench {
    pub(crate) fn new(allocation: InstanceAllocation, directory: &Path) -> Self {
        let sandbox = Arc::new(folders::sandbox(allocation));
        let load = |(name, component)| {
            (name, Arc::new(sandbox.load(component, &|| ()).expect("it loads")))
        };
        let plugins = cofferdam::tools::builtin_components().map(load).collect();
        let commands = folders::commands(SandboxLevel::None);
        let workspace = Arc::new(
            Workspace::open(directory, &cofferdam_cli::host_environment()).expect("it opens"),
        );
        Self { sandbox, commands, workspace, history: None, plugins }
    }

    /// Backs up changed files in `directory`, as `cofferdam undo` needs it.
    fn with_history(self, directory: &Path) -> Self {
        Self { history: Some(UndoHistory::for_workspace(directory, &self.workspace)), ..self }
    }

    /// Runs commands in the given command sandbox instead of an unconfined one.
    pub(crate) fn with_commands(self, commands: Arc<CommandSandbox>) -> Self {
        Self { commands, ..self }
    }

    /// Calls a built-in tool, commits its staged changes and returns the first text of its result.
    ///
    /// # Panics
    ///
    /// If the call fails.
    pub(crate) fn call(&self, runtime: &Runtime, tool: &str, input: &str) -> String {
        let mut report = self.report(runtime, tool, input);
        if let Some(staged) = report.staged.take() {
            let permit =
                permit(Effect::Write { changes: staged.changes().clone(), confirm: false });
            staged.commit(permit, tool, self.history.as_ref()).expect("it is changed");
        }
        match report.result.expect("the call is good").content.into_iter().next() {
            Some(cofferdam::sandbox::OutputPiece::Text(text)) => text,
            _ => String::new(),
        }
    }

    fn report(&self, runtime: &Runtime, tool: &str, input: &str) -> CallReport {
        let (_, plugin) =
            self.plugins.iter().find(|(name, _)| *name == tool).expect("it is built in");
        let declared = plugin
            .declaration()
            .tools
            .iter()
            .find(|declared| declared.name == tool)
            .expect("it has that name");
        let call = PluginCall {
            jobs: None,
            job_recorder: Arc::new(|_, _| {}),
            tool: tool.to_owned(),
            input: input.to_owned(),
            grants: cofferdam::policy::Grants::from_requested(&declared.asks),
            limits: CallLimits::default(),
            workspace: Arc::clone(&self.workspace),
            gate: Arc::new(|effect| {
                let permit = permit(effect);
                Box::pin(async { GateRuling::Permitted(permit) })
            }),
            change_judge: Arc::new(|_| CommandChangeVerdict::Accept),
            denial_recorder: Arc::new(|_, _| {}),
            mode: Arc::new(|| cofferdam::policy::ApprovalMode::Auto),
            connection_judge: Arc::new(|_| ConnectionDecision {
                verdict: ConnectionVerdict::Ask,
                names_address: false,
            }),
            history: None,
            plan_gate: Arc::new(|_| panic!("nothing that is measured presents plans")),
            commands: Arc::clone(&self.commands),
            progress: Arc::new(|_| ()),
            tool_state: ToolState::default(),
            delegation: Arc::new(|_| panic!("nothing that is measured delegates")),
            credentials: Vec::new().into(),
            cancellation: CancellationToken::new(),
        };
        runtime.block_on(plugin.call(&self.sandbox, call))
    }
}

fn permit(effect: Effect) -> Permit {
    let Authorization::Allow(permit, _) =
        Authorizer::new(ApprovalMode::Auto, false).authorize(ToolId::new("bench", ""), "", effect)
    else {
        panic!("auto allows")
    };
    permit
}

pub(crate) fn run(runtime: &Runtime) {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("file.txt");
    std::fs::write(&file, "a line of text\n".repeat(20)).expect("it is written");
    for (allocation, name) in
        [(InstanceAllocation::Pooled, "pooled"), (InstanceAllocation::OnDemand, "on demand")]
    {
        let bench = Bench::new(allocation, directory.path());
        let line = format!("submit, {name}");
        alone(&Line { name: &line, target: "≤ 35 µs + a thread hop" }, 30, 100, || {
            bench.call(runtime, "submit", "{}");
        });
        let line = format!("read_file, {name} (native: read_to_string)");
        let read = || {
            bench.call(runtime, "read_file", r#"{"path":"file.txt"}"#);
        };
        against(&Line { name: &line, target: "" }, 300, read, || {
            let _ = std::fs::read_to_string(&file);
        });
        let line = format!("bash `true`, {name} (native: sh -c true)");
        let bash = || {
            bench.call(runtime, "bash", r#"{"command":"true"}"#);
        };
        let native = || succeeds(Command::new("sh").args(["-c", "true"]));
        against(&Line { name: &line, target: "" }, 50, bash, native);
    }
    staged(runtime);
    let hop =
        || runtime.block_on(async { tokio::task::spawn_blocking(|| ()).await.expect("it runs") });
    alone(&Line { name: "the thread hop alone", target: "" }, 30, 100, hop);
}

fn succeeds(command: &mut Command) {
    assert!(command.output().expect("it starts").status.success(), "{command:?}");
}

/// Measures one file edit: stage, diff, back up the old content, commit. The native counterpart is
/// what an editor does to survive a power cut: write a new file beside the old one, sync it, and
/// rename it over the old one.
fn staged(runtime: &Runtime) {
    let (directory, backups) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let texts = ["one\n", "two\n"].map(|line| format!("{}{line}", "a line of text\n".repeat(20)));
    let path = directory.path().join("file.txt");
    std::fs::write(&path, &texts[0]).expect("it is written");
    let bench =
        Bench::new(InstanceAllocation::Pooled, directory.path()).with_history(backups.path());
    let mut turns = [
        r#"{"path":"file.txt","old_text":"one","new_text":"two"}"#,
        r#"{"path":"file.txt","old_text":"two","new_text":"one"}"#,
    ]
    .iter()
    .cycle();
    let change = || {
        bench.call(runtime, "update_file", turns.next().expect("it goes on for ever"));
    };
    let mut contents = texts.iter().cycle();
    let native = || {
        replace(directory.path(), "other.txt", contents.next().expect("it goes on for ever"))
            .expect("it is replaced")
    };
    against(
        &Line { name: "update_file, pooled (native: sync, rename)", target: "" },
        50,
        change,
        native,
    );
}

fn replace(directory: &Path, name: &str, content: &str) -> io::Result<()> {
    let new = directory.join("new");
    let mut file = File::create(&new)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(new, directory.join(name))?;
    File::open(directory)?.sync_all()
}

/// Measures the program from process start to exit, as a user starts it.
pub(crate) fn cold() {
    let directory = tempfile::tempdir().expect("a folder");
    std::fs::write(directory.path().join("file.txt"), "a line of text\n").expect("it is written");
    let program = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
        command.current_dir(directory.path()).envs(folders::own_folders(directory.path()));
        command
    };
    let native = || succeeds(Command::new("cat").arg("file.txt").current_dir(directory.path()));
    let cases: [(&str, &[&str], &str); 3] = [
        ("tools list (native: cat)", &["tools", "list"], "≤ 10 ms"),
        ("tools call submit (native: cat)", &["tools", "call", "submit", "{}"], "≤ 4 ms"),
        (
            "tools call read_file (native: cat)",
            &["tools", "call", "read_file", r#"{"path":"file.txt"}"#],
            "≤ 4 ms",
        ),
    ];
    for (name, arguments, target) in cases {
        let run = || {
            let output = program().args(arguments).output().expect("it starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        against(&Line { name, target }, 30, run, native);
    }
}
