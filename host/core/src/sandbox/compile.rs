//! Compiles components in a separate process with limits, because a hostile component can make
//! compilation take minutes and gigabytes.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wasmtime::Engine;

use super::engine::{InstanceAllocation, SandboxOptions, WasmSandbox};
use cofferdam_confine;

/// The largest component that is accepted, in bytes. The largest in use, CPython's, has 18 MiB.
pub(crate) const MAX_COMPONENT_SIZE: usize = 64 << 20;
/// The largest component in use takes 45 s of one core on a slow machine.
const TIME_LIMIT: Duration = Duration::from_secs(180);
/// The address space of the compiling process, in bytes.
const MEMORY_LIMIT: u64 = 8 << 30;

/// Where components are compiled.
#[derive(Clone, Debug)]
pub enum CompilerKind {
    /// In this program, started again with the argument `compile-component`, which
    /// [`HelperProcesses::init`](crate::HelperProcesses::init) handles.
    ChildProcess(PathBuf),
    /// In this process, for trusted components.
    InProcess,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CompileError {
    #[error("{0}")]
    Invalid(String),
    #[error(
        "compiling it takes longer than the limit of {} seconds",
        TIME_LIMIT.as_secs()
    )]
    TimedOut,
    #[error("cannot run the compiler: {0}")]
    Io(#[from] std::io::Error),
}

impl CompilerKind {
    pub(super) fn compile(
        &self,
        engine: &Engine,
        component: &[u8],
    ) -> Result<Vec<u8>, CompileError> {
        match self {
            Self::InProcess => engine
                .precompile_component(component)
                .map_err(|error| CompileError::Invalid(format!("{error:#}"))),
            Self::ChildProcess(program) => compile_in_child(program, component),
        }
    }
}

fn compile_in_child(program: &PathBuf, component: &[u8]) -> Result<Vec<u8>, CompileError> {
    let mut child = Command::new(program)
        .arg("compile-component")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(CompileError::Io(std::io::ErrorKind::BrokenPipe.into()));
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // If the child dies before it has read everything, its exit status says why.
            let _ = stdin.write_all(component);
        });
        let compiled = scope.spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).map(|_| bytes)
        });
        let error_text = scope.spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.by_ref().take(64 << 10).read_to_end(&mut text);
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if started.elapsed() > TIME_LIMIT {
                child.kill()?;
                child.wait()?;
                return Err(CompileError::TimedOut);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let compiled = compiled.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()))?;
        let error_text = error_text.join().unwrap_or_default();
        match (status.success(), error_text.is_empty()) {
            (true, _) => Ok(compiled),
            (false, false) => Err(CompileError::Invalid(error_text)),
            (false, true) => {
                Err(CompileError::Invalid(format!("the compiler failed with {status}")))
            }
        }
    })
}

/// Implements the child process of [`CompilerKind::ChildProcess`]: reads a component from standard
/// input and writes machine code to standard output. Sets its own limits before it reads anything.
///
/// # Errors
///
/// Returns an error if the limits cannot be set or the component cannot be compiled.
pub(crate) fn compile_from_stdin() -> Result<(), String> {
    cofferdam_confine::limit_compiler(2 * TIME_LIMIT, MEMORY_LIMIT)
        .map_err(|error| format!("cannot set the limits of the compiler: {error}"))?;
    let mut component = Vec::new();
    let max_bytes = MAX_COMPONENT_SIZE as u64 + 1;
    std::io::stdin()
        .lock()
        .take(max_bytes)
        .read_to_end(&mut component)
        .map_err(|error| error.to_string())?;
    let options = SandboxOptions {
        allocation: InstanceAllocation::OnDemand,
        compiler: CompilerKind::InProcess,
        cache: None,
    };
    let sandbox = WasmSandbox::new(options).map_err(|error| error.to_string())?;
    let compiled =
        sandbox.engine.precompile_component(&component).map_err(|error| format!("{error:#}"))?;
    std::io::stdout().lock().write_all(&compiled).map_err(|error| error.to_string())
}
