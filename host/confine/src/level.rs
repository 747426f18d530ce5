//! The sandbox level that commands get on this machine, and its known gaps.

mod spawn_plan;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::protocol::{
    CommandPaths, CommandStreams, NamespaceMaker, NetworkAccess, SupervisedView,
};
use super::unavailable::{LevelUnavailable, PrerequisiteError, SelfTestError};
use super::{journal, visible_paths, worktree};
use crate::HostEnvironment;
use crate::os;
use crate::path_resolver::PathResolver;
use crate::process::ready_supervisor::ReadySupervisor;
use crate::view::{CommandLayer, ViewUnavailable, check_workspace};
use cofferdam_policy::{
    CommandLimits, CommandNetwork, CommandRules, Denial, DenialCode, DirectDirectory, NetworkRules,
    ProtectedPaths, SandboxLevel,
};

pub(crate) use spawn_plan::SpawnPlan;
use spawn_plan::may_open;

/// The sandbox settings that apply to all commands of this process.
///
/// ```
/// use cofferdam_confine::{CommandSandbox, HostEnvironment};
/// use cofferdam_policy::{CommandRules, SandboxLevel};
///
/// let sandbox = |rules| {
///     let (program, set_aside) = ("my-program".into(), "/home/me/.local/state/set-aside".into());
///     CommandSandbox::new(program, rules, set_aside, HostEnvironment::default())
/// };
/// // The rules demand a sandbox, as they do by default, and disable each one.
/// let demanding = CommandRules { maximum: SandboxLevel::None, ..CommandRules::default() };
/// let denial = sandbox(demanding.clone()).allowed_level().expect_err("there is no sandbox");
/// assert!(denial.reason.contains("level `kernel` or better"));
/// // The rules allow commands without a sandbox.
/// let lax = CommandRules { minimum: SandboxLevel::None, ..demanding };
/// assert_eq!(sandbox(lax).allowed_level(), Ok(SandboxLevel::None));
/// ```
///
/// [`process::run`](crate::process::run) runs a command that an
/// [`Authorizer`](cofferdam_policy::Authorizer) permitted:
///
/// ```no_run
/// use std::time::Duration;
///
/// use cofferdam_confine::{CommandSandbox, process};
/// use cofferdam_policy::{Permit, ProtectedPaths};
/// use tokio_util::sync::CancellationToken;
///
/// # async fn example(
/// #     sandbox: CommandSandbox,
/// #     permit: Permit,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let level = sandbox.allowed_level().map_err(|denial| denial.reason)?;
/// let workspace = process::CommandWorkspace {
///     root: "/home/me/project".as_ref(),
///     protected: &ProtectedPaths::default(),
///     direct: &[],
///     writes_directly: false,
/// };
/// let (limit, cancel) = (Duration::from_secs(60), CancellationToken::new());
/// let ran = process::run(permit, workspace, limit, &cancel, &sandbox, level, None);
/// let finished = ran.await?;
/// println!("{}", finished.stdout);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CommandSandbox {
    program: PathBuf,
    rules: CommandRules,
    set_aside: PathBuf,
    environment: HostEnvironment,
    /// The files and directories of this program itself.
    own: Vec<PathBuf>,
    makers: NamespaceMakers,
    /// The directory for the changes of commands; `None` if commands write workspaces directly.
    layers: Option<PathBuf>,
    measured: Arc<OnceLock<MeasuredLevel>>,
    /// The supervisor of the next command.
    ready: ReadySupervisor,
    /// Whether the supervisor of the next command is started in advance.
    keeps_ready: bool,
    /// The names of variables that commands get in addition to the usual ones.
    passed: Vec<String>,
}

/// What a server gets in place of the permissions of commands. It has no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPermissions {
    /// The hosts that the server can connect to.
    pub network: NetworkRules,
    /// Absolute paths outside the workspace that the server can read.
    pub read: Vec<PathBuf>,
    /// The names of environment variables that the server gets in addition to those of commands.
    pub variables: Vec<String>,
    /// The limits of all processes of the server together.
    pub limits: CommandLimits,
}

/// Returns the repository of a workspace if it lies outside. Commands can read it but not write it.
pub fn outer_repository(workspace: &Path, environment: &HostEnvironment) -> Option<PathBuf> {
    worktree::find_outer_repository(workspace, environment.home.as_deref())
}

/// The result of the self-tests on this machine.
#[derive(Debug)]
#[non_exhaustive]
pub struct MeasuredLevel {
    /// The highest level that passed its self-test.
    pub level: SandboxLevel,
    /// The reasons why each higher level is unavailable.
    pub unavailable: Vec<(SandboxLevel, LevelUnavailable)>,
    /// What creates the namespaces of commands, at the level `full`.
    namespaces: Option<NamespaceMaker>,
    /// Whether a private view of a workspace passed the self-test, or why it did not.
    private_view: Result<(), ViewUnavailable>,
}

/// A way to sandbox a command, which a self-test can measure.
#[derive(Clone, Debug)]
pub(crate) struct SandboxSetup {
    pub(crate) level: SandboxLevel,
    pub(crate) namespaces: Option<NamespaceMaker>,
    pub(crate) view: SupervisedView,
    pub(crate) streams: CommandStreams,
}

/// What the self-tests of a level measured.
struct MeasuredSetup {
    namespaces: Option<NamespaceMaker>,
    private_view: Result<(), ViewUnavailable>,
}

/// What is tried to create the namespaces of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamespaceMakers {
    /// The supervisor of a command, and bubblewrap if the system does not allow that.
    All,
    BubblewrapOnly,
}

/// The place where a command runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandLocation<'a> {
    pub(crate) workspace: &'a Path,
    /// The working directory: the workspace or a directory below it.
    pub(crate) directory: &'a Path,
    /// The protected paths below the workspace.
    pub(crate) protected: &'a ProtectedPaths,
    /// The directories that the command writes directly, if it has a private view.
    pub(crate) direct: &'a [DirectDirectory],
}

impl CommandSandbox {
    /// Creates a sandbox with these rules. It does not measure the level yet.
    ///
    /// `program` is this program, which restarts itself around each command. `set_aside` is the
    /// directory to which entries that must not stay in a workspace are moved. `environment`
    /// decides which toolchains commands see and which variables they get.
    pub fn new(
        program: PathBuf,
        rules: CommandRules,
        set_aside: PathBuf,
        environment: HostEnvironment,
    ) -> Self {
        Self {
            program,
            rules,
            set_aside,
            environment,
            own: Vec::new(),
            makers: NamespaceMakers::All,
            layers: None,
            measured: Arc::default(),
            ready: ReadySupervisor::default(),
            keeps_ready: true,
            passed: Vec::new(),
        }
    }

    /// Returns a sandbox with the same level for one server, with the permissions of that server in
    /// place of those of commands.
    #[must_use]
    pub fn for_server(&self, permissions: &ServerPermissions) -> Self {
        let ServerPermissions { network, read, variables, limits } = permissions.clone();
        let rules = CommandRules {
            network: match network.is_empty() {
                true => CommandNetwork::Closed,
                false => CommandNetwork::Listed(network),
            },
            read,
            write: Vec::new(),
            direct: Vec::new(),
            review_changes: false,
            limits,
            ..self.rules.clone()
        };
        Self {
            program: self.program.clone(),
            rules,
            set_aside: self.set_aside.clone(),
            environment: self.environment.clone(),
            own: self.own.clone(),
            makers: self.makers,
            layers: self.layers.clone(),
            measured: Arc::clone(&self.measured),
            ready: ReadySupervisor::default(),
            keeps_ready: false,
            passed: variables,
        }
    }

    /// Sets the files and directories of this program itself. Their permissions are restored after
    /// each command that can change them.
    #[must_use]
    pub fn with_own(self, own: Vec<PathBuf>) -> Self {
        // The request to the supervisor is JSON, which cannot hold paths that are not UTF-8.
        let own = own.into_iter().filter(|path| path.to_str().is_some()).collect();
        Self { own, ..self }
    }

    /// Lets bubblewrap create all namespaces, as on a system that allows them to it alone.
    #[must_use]
    pub fn with_bubblewrap_only(self) -> Self {
        Self { makers: NamespaceMakers::BubblewrapOnly, ..self }
    }

    /// Sets the directory for the changes of commands. A command then has a private view of the
    /// workspace where the system allows it; otherwise it writes the workspace directly.
    #[must_use]
    pub fn with_layers(self, layers: Option<PathBuf>) -> Self {
        Self { layers, ..self }
    }

    /// Returns the same sandbox with other rules.
    pub(super) fn with_rules(&self, rules: CommandRules, set_aside: PathBuf) -> Self {
        Self::new(self.program.clone(), rules, set_aside, self.environment.clone())
    }

    /// Restores the protected paths of a workspace if all processes around its last command were
    /// killed. Returns the notices.
    pub fn recover_unfinished(&self, workspace: &Path) -> Vec<String> {
        journal::recover_if_idle(&self.set_aside, workspace)
    }

    /// Returns the directories of this program itself, without links.
    fn real_own_directories(&self, resolver: &PathResolver) -> Vec<PathBuf> {
        let own = self.own.iter().filter(|path| path.is_dir());
        own.map(|path| resolver.real(path)).collect()
    }

    /// Returns the environment of the host.
    pub(super) fn environment(&self) -> &HostEnvironment {
        &self.environment
    }

    /// Returns the directory for temporary files.
    pub fn temp_dir(&self) -> &Path {
        &self.environment.temp_dir
    }

    pub(super) fn set_aside(&self) -> &Path {
        &self.set_aside
    }

    /// Returns the paths outside the workspace that commands under these rules can see.
    fn find_command_paths(&self, rules: &CommandRules, resolver: &PathResolver) -> CommandPaths {
        let environment = &self.environment;
        let variable = |name: &str| environment.variable(name);
        visible_paths::find_command_paths(rules, environment.command_home(), variable, resolver)
    }

    /// Returns whether commands under these rules can see this directory.
    pub(super) fn is_visible(&self, folder: &Path, rules: &CommandRules) -> bool {
        let resolver = PathResolver::default();
        let folder = resolver.real(folder);
        let places = self.find_command_paths(rules, &resolver);
        let own = self.real_own_directories(&resolver);
        let read = places.read.iter().filter(|place| may_open(place, &own, rules, &resolver));
        read.chain(&places.write).any(|place| folder.starts_with(place))
    }

    /// Returns the rules for commands.
    pub fn rules(&self) -> &CommandRules {
        &self.rules
    }

    /// Returns the level of this machine, and measures it at the first call, which takes a tenth of
    /// a second.
    pub fn measured(&self) -> &MeasuredLevel {
        self.measured.get_or_init(|| self.measure())
    }

    fn measure(&self) -> MeasuredLevel {
        let mut unavailable = Vec::new();
        for level in [SandboxLevel::Full, SandboxLevel::Kernel] {
            let checked = if level > self.rules.maximum {
                Err(LevelUnavailable::AboveMaximum)
            } else {
                self.check_level(level)
            };
            match checked {
                Ok(MeasuredSetup { namespaces, private_view }) => {
                    return MeasuredLevel { level, unavailable, namespaces, private_view };
                }
                Err(problem) => unavailable.push((level, problem)),
            }
        }
        let private_view = Err(ViewUnavailable::Namespaces);
        MeasuredLevel { level: SandboxLevel::None, unavailable, namespaces: None, private_view }
    }

    /// Checks what a level needs, tests it, and returns what creates the namespaces.
    fn check_level(&self, level: SandboxLevel) -> Result<MeasuredSetup, LevelUnavailable> {
        os::check_kernel_support()?;
        let test = |namespaces: Option<NamespaceMaker>| {
            let setup = SandboxSetup {
                level,
                namespaces,
                view: SupervisedView::Direct,
                streams: CommandStreams::default(),
            };
            self.self_test(&setup, None)?;
            let private_view = Err(ViewUnavailable::Namespaces);
            Ok::<_, SelfTestError>(MeasuredSetup { namespaces: setup.namespaces, private_view })
        };
        if level != SandboxLevel::Full {
            return Ok(test(None)?);
        }
        os::check_namespaces()?;
        if self.makers == NamespaceMakers::BubblewrapOnly {
            return Ok(test(Some(NamespaceMaker::Bubblewrap(os::find_bubblewrap()?)))?);
        }
        let namespaces = Some(NamespaceMaker::Supervisor);
        let private_view = self.check_private_view(level);
        if private_view.is_ok() {
            return Ok(MeasuredSetup { namespaces, private_view });
        }
        let own = match test(namespaces) {
            Ok(setup) => return Ok(MeasuredSetup { private_view, ..setup }),
            Err(problem) => problem,
        };
        let failed = |bubblewrap| LevelUnavailable::Namespaces { own, bubblewrap };
        match os::find_bubblewrap() {
            Err(problem) => Err(failed(problem.into())),
            Ok(path) => {
                let bubblewrap = NamespaceMaker::Bubblewrap(path);
                test(Some(bubblewrap)).map_err(|problem| failed(problem.into()))
            }
        }
    }

    /// Tests a private view on the file system that will hold the changes of commands.
    fn check_private_view(&self, level: SandboxLevel) -> Result<(), ViewUnavailable> {
        let layers = self.layers.as_deref().ok_or(ViewUnavailable::NoDirectory)?;
        let namespaces = Some(NamespaceMaker::Supervisor);
        let setup = SandboxSetup {
            level,
            namespaces,
            view: SupervisedView::Direct,
            streams: CommandStreams::default(),
        };
        let tested = self.self_test(&setup, Some(layers));
        tested.map_err(|problem| ViewUnavailable::SelfTest(problem.to_string()))
    }

    /// Checks whether commands have a private view of a workspace at the level of this machine.
    ///
    /// # Errors
    /// The reason why commands write this workspace directly.
    pub fn private_view(&self, workspace: &Path) -> Result<(), ViewUnavailable> {
        self.measured().private_view.clone()?;
        let layers = self.layers.as_deref().ok_or(ViewUnavailable::NoDirectory)?;
        check_workspace(workspace, layers)
    }

    /// Creates the layer for the next command in a workspace, or returns `None` if the command has
    /// to write the workspace directly.
    ///
    /// # Errors
    /// The directory cannot be created, although commands have a private view of this workspace.
    pub(crate) fn create_layer(&self, workspace: &Path) -> std::io::Result<Option<CommandLayer>> {
        match (self.private_view(workspace), &self.layers) {
            (Ok(()), Some(layers)) => CommandLayer::create(layers, workspace).map(Some),
            (Err(_), _) | (_, None) => Ok(None),
        }
    }

    /// Returns the level in which commands run.
    ///
    /// # Errors
    /// The machine does not reach the minimum level that the rules require, or the feature
    /// `commands` is disabled.
    pub fn allowed_level(&self) -> Result<SandboxLevel, Denial> {
        if !os::RUNS_COMMANDS {
            let reason = format!("{}.", PrerequisiteError::NotBuilt);
            return Err(Denial::without_remedy(DenialCode::NoSandbox, reason));
        }
        let MeasuredLevel { level, unavailable: lacking, .. } = self.measured();
        if *level >= self.rules.minimum {
            return Ok(*level);
        }
        let why: Vec<String> = lacking
            .iter()
            .filter(|(level, _)| *level >= self.rules.minimum)
            .map(|(level, problem)| format!("`{level}`: {problem}"))
            .collect();
        let minimum = self.rules.minimum;
        let (demanded, allow_less) = match &self.rules.required_by {
            Some(place) => (
                format!(" (`minimum = \"{minimum}\"` at {place})"),
                format!("change `minimum` in {}", place.file),
            ),
            None => (
                String::new(),
                "allow a lower level, such as `minimum = \"none\"` under `[commands]` in the \
                    configuration"
                    .to_owned(),
            ),
        };
        let reason = format!(
            "commands need the sandbox level `{minimum}` or better{demanded}, which this machine \
                does not support: {}.",
            why.join("; ")
        );
        let remedy = format!(
            "The user can install what is missing, or {allow_less}; `cofferdam doctor` shows the \
                details."
        );
        Err(Denial {
            place: self.rules.required_by.clone(),
            ..Denial::new(DenialCode::NoSandbox, reason, remedy)
        })
    }

    /// Returns how commands are sandboxed at a level that [`Self::allowed_level`] returned.
    pub(crate) fn setup_at(&self, level: SandboxLevel) -> SandboxSetup {
        let is_full = level == SandboxLevel::Full;
        let namespaces = self.measured().namespaces.clone().filter(|_| is_full);
        SandboxSetup {
            level,
            namespaces,
            view: SupervisedView::Direct,
            streams: CommandStreams::default(),
        }
    }

    /// Returns the network access of commands at the level of this machine.
    pub(crate) fn network_access(&self) -> NetworkAccess {
        match &self.rules.network {
            CommandNetwork::None | CommandNetwork::Closed => NetworkAccess::None,
            CommandNetwork::All => NetworkAccess::Host,
            CommandNetwork::Listed(_) => match self.measured().namespaces {
                Some(NamespaceMaker::Supervisor) => NetworkAccess::Proxy,
                // Nothing would force the command to use a proxy, or no socket could be passed.
                Some(NamespaceMaker::Bubblewrap(_)) | None => NetworkAccess::None,
            },
        }
    }
}
