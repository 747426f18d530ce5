//! Loads a plugin: checks its size, compiles it or takes it from the cache, lists its tools, and
//! compares them with its imports.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tracing::{debug, info};
use wasmtime::Store;
use wasmtime::component::Component;

use super::call_state::CallState;
use super::clock::CallClock;
use super::compile::MAX_COMPONENT_SIZE;
use super::contract::v0_2::PluginPre;
use super::declaration::{ComponentImports, HostInterface, ListedTool, PluginDeclaration};
use super::engine::WasmSandbox;
use super::failure::CallFailure;
use super::limits::CallLimits;
use crate::policy::ComponentDigest;
use crate::terminal_escape;

/// The file extension of a cached declaration. The number increases with every change of the
/// checks, so that a declaration that passed fewer checks is not reused.
const DECLARATION_EXTENSION: &str = "tools-5";
/// The file extension of a compiled component: a seal and the machine code.
const CODE_EXTENSION: &str = "code-1";

/// The bytes of a component, with their digest.
pub struct ComponentBytes {
    digest: ComponentDigest,
    bytes: Cow<'static, [u8]>,
    /// The declaration of a component that is built into the program.
    declaration: Option<PluginDeclaration>,
}

/// A component that can be called. Its code is loaded at the first call.
pub struct LoadedPlugin {
    digest: ComponentDigest,
    declaration: PluginDeclaration,
    bytes: Cow<'static, [u8]>,
    instance_pre: OnceLock<PluginPre>,
}

/// Why a plugin was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, std::io::Error),
    /// The component is too large.
    #[error("it has {0} bytes; the limit is {MAX_COMPONENT_SIZE}")]
    TooLarge(usize),
    /// The file is not WebAssembly.
    #[error("it is not WebAssembly{}", describe_first_bytes(.0))]
    NotWasm(Vec<u8>),
    /// The file is a core module and not a component.
    #[error(
        "it is a core WebAssembly module, but a plugin must be a component: build it for \
            wasm32-wasip2, or with `cofferdam plugin build`"
    )]
    CoreModule,
    /// The component is invalid, or this host does not support it.
    #[error("it is not a supported component: {0}")]
    Invalid(String),
    /// The component imports something that this host does not have.
    #[error("it does not match the interfaces of this host: {0}")]
    Unlinkable(String),
    /// The call of `list-tools` failed.
    #[error("its function `list-tools` failed: {0}")]
    ListTools(CallFailure),
    /// The declaration is refused.
    #[error("its declaration is not valid: {0}")]
    Declaration(String),
    /// The component imports an interface that none of its tools requests.
    #[error(
        "it imports {}, but none of its tools requests the capability",
        join_interface_names(.0)
    )]
    UnrequestedImports(Vec<HostInterface>),
    /// A fault of this program or of the machine.
    #[error("the host failed: {0}")]
    Host(String),
}

/// Describes the first bytes of a file that is not WebAssembly.
fn describe_first_bytes(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes).chars().take(8).collect();
    if text.is_empty() {
        "; it is empty".to_owned()
    } else {
        format!(" (it begins with `{}`)", terminal_escape::escape_line(&text, 40))
    }
}

/// Checks the header of a file: the magic bytes, and whether it is a component or a core module.
fn check_component_header(bytes: &[u8]) -> Result<(), LoadError> {
    match bytes {
        [b'\0', b'a', b's', b'm', _, _, 0, 0, ..] => Err(LoadError::CoreModule),
        [b'\0', b'a', b's', b'm', ..] => Ok(()),
        _ => Err(LoadError::NotWasm(bytes.iter().take(32).copied().collect())),
    }
}

/// Describes a file that is not a regular file.
fn special(kind: std::fs::FileType) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt as _;
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a directory"),
        kind if kind.is_fifo() => Some("a FIFO"),
        _ => Some("a device or a socket"),
    }
}

fn join_interface_names(interfaces: &[HostInterface]) -> String {
    interfaces.iter().map(|interface| interface.interface()).collect::<Vec<_>>().join(" and ")
}

impl ComponentBytes {
    /// Creates a component that is built into the program, with the digest and the declaration from
    /// build time. Without a declaration, its tools are listed when it is loaded.
    pub fn embedded(
        digest: ComponentDigest,
        bytes: &'static [u8],
        declaration: Option<PluginDeclaration>,
    ) -> Self {
        Self { digest, bytes: Cow::Borrowed(bytes), declaration }
    }

    /// Returns the declaration from build time.
    pub fn declaration(&self) -> Option<&PluginDeclaration> {
        self.declaration.as_ref()
    }

    /// Returns the digest of the bytes.
    pub fn digest(&self) -> &ComponentDigest {
        &self.digest
    }

    /// Reads a component from a regular file.
    ///
    /// # Errors
    ///
    /// Returns an error if the path is not a regular file or cannot be read. Reads at most one byte
    /// more than 64 MiB; [`WasmSandbox::load`] refuses larger components.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        use std::io::Read as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let problem = |error| LoadError::Read(path.to_owned(), error);
        // Opening a FIFO must not block.
        let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = std::fs::File::options()
            .read(true)
            .custom_flags(nonblock)
            .open(path)
            .map_err(problem)?;
        if let Some(kind) = special(file.metadata().map_err(problem)?.file_type()) {
            return Err(problem(std::io::Error::other(format!(
                "it is {kind}, but a plugin must be a regular file"
            ))));
        }
        let mut bytes = Vec::new();
        let max_bytes = MAX_COMPONENT_SIZE as u64 + 1;
        file.take(max_bytes).read_to_end(&mut bytes).map_err(problem)?;
        Ok(bytes.into())
    }
}

impl AsRef<[u8]> for ComponentBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Arc<[u8]>> for ComponentBytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        bytes.to_vec().into()
    }
}

impl std::fmt::Debug for ComponentBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComponentBytes")
            .field("digest", &self.digest)
            .field("size", &self.bytes.len())
            .finish()
    }
}

impl From<Vec<u8>> for ComponentBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            digest: ComponentDigest::compute(&bytes),
            bytes: Cow::Owned(bytes),
            declaration: None,
        }
    }
}

impl LoadedPlugin {
    /// Returns the digest of the component.
    pub fn digest(&self) -> &ComponentDigest {
        &self.digest
    }

    /// Returns the declaration of the plugin.
    pub fn declaration(&self) -> &PluginDeclaration {
        &self.declaration
    }

    /// Lists the tools again, ignoring the cached declaration. Blocks, and must not be called on an
    /// async task.
    pub fn reload_declaration(
        &self,
        sandbox: &WasmSandbox,
    ) -> Result<PluginDeclaration, LoadError> {
        sandbox.list_tools(self.instance_pre(sandbox)?, self.declaration.imports.clone())
    }

    /// Returns the bytes of the component.
    pub fn component(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the size of the component in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the linked component, in most cases from the cache.
    pub(super) fn instance_pre(&self, sandbox: &WasmSandbox) -> Result<&PluginPre, LoadError> {
        if let Some(ready) = self.instance_pre.get() {
            return Ok(ready);
        }
        let component = sandbox.load_component(&self.digest, &self.bytes)?;
        let ready = sandbox.link(&component)?;
        Ok(self.instance_pre.get_or_init(|| ready))
    }
}

impl WasmSandbox {
    /// Loads a component. The first load compiles it, which takes from a tenth of a second to most
    /// of a minute; `on_compile` is called before that. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the component is invalid, does not fit this host, fails to list its
    /// tools, or imports an interface that no tool requests.
    pub fn load(
        &self,
        component: impl Into<ComponentBytes>,
        on_compile: &dyn Fn(),
    ) -> Result<LoadedPlugin, LoadError> {
        let ComponentBytes { digest, bytes, declaration } = component.into();
        if bytes.len() > MAX_COMPONENT_SIZE {
            return Err(LoadError::TooLarge(bytes.len()));
        }
        check_component_header(&bytes)?;
        let (declaration, ready) = match declaration {
            Some(declaration) => (declaration, self.precompile(&digest, &bytes, on_compile)?),
            None => self.load_declaration(&digest, &bytes, on_compile)?,
        };
        let unrequested = declaration.unrequested_imports();
        if !unrequested.is_empty() {
            return Err(LoadError::UnrequestedImports(unrequested));
        }
        Ok(LoadedPlugin { digest, declaration, bytes, instance_pre: ready })
    }

    /// Compiles a component in advance if there is a cache that can keep the result.
    fn precompile(
        &self,
        digest: &ComponentDigest,
        bytes: &[u8],
        on_compile: &dyn Fn(),
    ) -> Result<OnceLock<PluginPre>, LoadError> {
        if self.cache.is_none() || self.is_compiled(digest) {
            return Ok(OnceLock::new());
        }
        on_compile();
        let component = self.load_component(digest, bytes)?;
        Ok(OnceLock::from(self.link(&component)?))
    }

    /// Returns the cached declaration, or lists the tools now.
    fn load_declaration(
        &self,
        digest: &ComponentDigest,
        bytes: &[u8],
        on_compile: &dyn Fn(),
    ) -> Result<(PluginDeclaration, OnceLock<PluginPre>), LoadError> {
        let name = self.cache_name(digest, DECLARATION_EXTENSION);
        let known = self.cache.as_ref().and_then(|cache| cache.read(&name));
        if let Some(declaration) =
            known.and_then(|known| serde_json::from_slice(known.content()).ok())
        {
            return Ok((declaration, OnceLock::new()));
        }
        if !self.is_compiled(digest) {
            on_compile();
        }
        let component = self.load_component(digest, bytes)?;
        let imports = ComponentImports::from_names(
            component.component_type().imports(&self.engine).map(|(name, _)| name),
        );
        let ready = self.link(&component)?;
        let declaration = self.list_tools(&ready, imports)?;
        if let (Some(cache), Ok(json)) = (&self.cache, serde_json::to_vec(&declaration)) {
            // If the cache cannot be written, only the next start is slower.
            let _ = cache.write(&name, &json);
        }
        Ok((declaration, OnceLock::from(ready)))
    }

    fn cache_name(&self, digest: &ComponentDigest, kind: &str) -> String {
        format!("{digest}-{:016x}.{kind}", self.compatibility_hash())
    }

    fn is_compiled(&self, digest: &ComponentDigest) -> bool {
        self.cache
            .as_ref()
            .is_some_and(|cache| cache.contains(&self.cache_name(digest, CODE_EXTENSION)))
    }

    fn load_component(
        &self,
        digest: &ComponentDigest,
        bytes: &[u8],
    ) -> Result<Component, LoadError> {
        let name = self.cache_name(digest, CODE_EXTENSION);
        let kept = self.cache.as_ref().and_then(|cache| cache.read(&name));
        if let Some(component) =
            kept.and_then(|kept| deserialize_component(self, kept.content()).ok())
        {
            debug!(%digest, "loaded a component from the cache");
            return Ok(component);
        }
        let started = Instant::now();
        let compiled = self
            .compiler
            .compile(&self.engine, bytes)
            .map_err(|error| LoadError::Invalid(error.to_string()))?;
        info!(%digest, bytes = bytes.len(), elapsed = ?started.elapsed(), "compiled a component");
        if let Some(cache) = &self.cache {
            // The same holds for compiled code.
            let _ = cache.write(&name, &compiled);
        }
        deserialize_component(self, &compiled)
    }

    fn link(&self, component: &Component) -> Result<PluginPre, LoadError> {
        let pre = self
            .linker
            .instantiate_pre(component)
            .map_err(|error| LoadError::Unlinkable(format!("{error:#}")))?;
        PluginPre::new(pre).map_err(|error| LoadError::Unlinkable(format!("{error:#}")))
    }

    /// Runs `list-tools` in a sandbox without permissions, on a thread of its own: the caller may
    /// be in an asynchronous runtime, which cannot block on another one.
    fn list_tools(
        &self,
        ready: &PluginPre,
        imports: ComponentImports,
    ) -> Result<PluginDeclaration, LoadError> {
        std::thread::scope(|scope| {
            let listed = scope.spawn(|| self.list_tools_blocking(ready, imports)).join();
            listed.unwrap_or_else(|_| {
                Err(LoadError::Host("it panicked while it read a declaration".into()))
            })
        })
    }

    fn list_tools_blocking(
        &self,
        ready: &PluginPre,
        imports: ComponentImports,
    ) -> Result<PluginDeclaration, LoadError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| LoadError::Host(error.to_string()))?;
        let limits = CallLimits::for_declaration();
        let clock =
            Arc::new(CallClock::start(limits.time, tokio_util::sync::CancellationToken::new()));
        let state = CallState::empty(&limits, Arc::clone(&clock));
        let mut store = self.new_store(state, &limits);
        let listed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(async {
                tokio::select! {
                    listed = async {
                        let instance = ready.instantiate_async(&mut store).await?;
                        instance.cofferdam_plugin_tools().call_list_tools(&mut store).await
                    } => Some(listed),
                    _ = clock.wait_for_stop() => None,
                }
            })
        }));
        match listed {
            Ok(Some(Ok(tools))) => {
                let tools = tools.into_iter().map(ListedTool::from).collect();
                PluginDeclaration::check(tools, imports).map_err(LoadError::Declaration)
            }
            Ok(Some(Err(error))) => {
                Err(LoadError::ListTools(CallFailure::from_wasmtime(&error, store.data(), &limits)))
            }
            Ok(None) => Err(LoadError::ListTools(CallFailure::from_stop(
                super::clock::CallStopReason::Expired,
                &limits,
            ))),
            Err(_) => Err(LoadError::Host(
                "the sandbox panicked while it listed the tools of a plugin".into(),
            )),
        }
    }

    /// Creates a store with all limits set before anything runs in it.
    pub(super) fn new_store(&self, state: CallState, limits: &CallLimits) -> Store<CallState> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(limits.crossing);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| match store.data().clock.stop_reason() {
            None => {
                store.data().clock.count_tick();
                Ok(wasmtime::UpdateDeadline::Continue(1))
            }
            Some(_) => Ok(wasmtime::UpdateDeadline::Interrupt),
        });
        store
    }
}

/// Loads machine code that this program compiled itself.
fn deserialize_component(sandbox: &WasmSandbox, compiled: &[u8]) -> Result<Component, LoadError> {
    // SAFETY: the bytes come from this program's own compiler, through memory or through a pipe
    // from its own child process, or they are what `ArtifactCache::read` returned. The latter are
    // bytes in the memory of this process. Their seal shows that this program wrote exactly them,
    // under a name that contains the digest of the component and everything of the engine that the
    // compilation depends on. Whoever can make such a seal can read the state of this user, and so
    // is this user.
    #[expect(unsafe_code, reason = "loading what this program compiled; see the comment above")]
    unsafe { Component::deserialize(&sandbox.engine, compiled) }
        .map_err(|error| LoadError::Host(format!("{error:#}")))
}
