//! Which sandbox commands get on this machine, and what that leaves open.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::protocol::{CommandJob, SupervisorRequest};
use super::{journal, visible_paths, worktree};
use crate::policy::{CommandRules, Denial, DenialCode, ProtectedPaths, SandboxLevel};
use crate::sandbox::digest::ComponentDigest;
use crate::sandbox::git::UserSettings;
use crate::sandbox::os;
use crate::sandbox::process::environment;

/// Everything that holds for all commands of this process.
#[derive(Debug)]
pub struct CommandSandbox {
    program: PathBuf,
    rules: CommandRules,
    set_aside: PathBuf,
    /// Files and folders of this program itself.
    own: Vec<PathBuf>,
    bubblewrap: OnceLock<Result<PathBuf, String>>,
    measured: OnceLock<MeasuredLevel>,
}

/// The repository of a workspace that lies outside of it, which commands can read and cannot write.
pub fn outer_repository(workspace: &Path) -> Option<PathBuf> {
    worktree::find_outer_repository(workspace)
}

/// What a self-test found.
#[derive(Clone, Debug)]
pub struct MeasuredLevel {
    /// The most that held.
    pub level: SandboxLevel,
    /// Why there is not more, for each level above.
    pub unavailable: Vec<(SandboxLevel, String)>,
}

/// Where a command runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::sandbox) struct CommandLocation<'a> {
    pub(in crate::sandbox) workspace: &'a Path,
    /// The workspace or below it.
    pub(in crate::sandbox) directory: &'a Path,
    /// What is protected below the workspace.
    pub(in crate::sandbox) protected: &'a ProtectedPaths,
}

/// A command that is about to be handed to a supervisor.
pub(in crate::sandbox) struct SpawnPlan {
    pub(in crate::sandbox) supervisor: Command,
    /// This process' end of what the supervisor reads its order from.
    pub(in crate::sandbox) link: UnixStream,
    /// The line of JSON to send.
    pub(in crate::sandbox) request: Vec<u8>,
    pub(in crate::sandbox) digest: ComponentDigest,
}

impl CommandSandbox {
    /// Under these rules. `program` is this program, which starts itself anew around each command;
    /// what has no business in a workspace is moved to `set_aside`. Nothing is measured yet.
    pub fn new(program: PathBuf, rules: CommandRules, set_aside: PathBuf) -> Self {
        Self {
            program,
            rules,
            set_aside,
            own: Vec::new(),
            bubblewrap: OnceLock::new(),
            measured: OnceLock::new(),
        }
    }

    /// With these files and folders of this program itself, whose permissions are put back after
    /// each command that can change them.
    #[must_use]
    pub fn with_own(self, own: Vec<PathBuf>) -> Self {
        // What is not UTF-8 cannot be told to the supervisor.
        let own = own.into_iter().filter(|path| path.to_str().is_some()).collect();
        Self { own, ..self }
    }

    /// The same under other rules.
    pub(super) fn with_rules(&self, rules: CommandRules, set_aside: PathBuf) -> Self {
        let (program, bubblewrap) = (self.program.clone(), self.bubblewrap.clone());
        Self { program, rules, set_aside, own: Vec::new(), bubblewrap, measured: OnceLock::new() }
    }

    /// Looks after the protected paths of a workspace if the last command in it was cut off by the
    /// end of all processes around it. Returns what was done.
    pub fn recover_unfinished(&self, workspace: &Path) -> Vec<String> {
        journal::recover_if_idle(&self.set_aside, workspace)
    }

    /// The directories of this program itself, without links.
    fn real_own_directories(&self) -> Vec<PathBuf> {
        let own = self.own.iter().filter(|path| path.is_dir());
        own.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect()
    }

    pub(super) fn set_aside(&self) -> &Path {
        &self.set_aside
    }

    /// Whether commands under these rules see this folder anyway.
    pub(super) fn is_visible(&self, folder: &Path, rules: &CommandRules) -> bool {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let places = visible_paths::find_command_paths(rules, user_home().as_deref(), |name| {
            std::env::var_os(name)
        });
        let own = self.real_own_directories();
        let read = places.read.iter().filter(|place| may_open(place, &own, rules));
        read.chain(&places.write).any(|place| folder.starts_with(place))
    }

    /// The rules.
    pub fn rules(&self) -> &CommandRules {
        &self.rules
    }

    /// What this machine has, tried out the first time that somebody asks: this takes a tenth of a
    /// second.
    pub fn measured(&self) -> &MeasuredLevel {
        self.measured.get_or_init(|| self.measure())
    }

    fn bubblewrap(&self) -> &Result<PathBuf, String> {
        self.bubblewrap.get_or_init(os::find_bubblewrap)
    }

    fn measure(&self) -> MeasuredLevel {
        let mut lacking = Vec::new();
        for level in [SandboxLevel::Full, SandboxLevel::Kernel] {
            let missing = if level > self.rules.maximum {
                Err("`commands.at_most` in the configuration does not let it be used".to_owned())
            } else {
                self.check_prerequisites(level).and_then(|()| self.self_test(level))
            };
            match missing {
                Ok(()) => return MeasuredLevel { level, unavailable: lacking },
                Err(problem) => lacking.push((level, problem)),
            }
        }
        MeasuredLevel { level: SandboxLevel::None, unavailable: lacking }
    }

    fn check_prerequisites(&self, level: SandboxLevel) -> Result<(), String> {
        os::missing_kernel_support().map_or(Ok(()), Err)?;
        if level == SandboxLevel::Full {
            self.bubblewrap().as_ref().map_err(Clone::clone)?;
        }
        Ok(())
    }

    /// The level in which commands run, or why they do not.
    pub fn allowed_level(&self) -> Result<SandboxLevel, Denial> {
        let MeasuredLevel { level, unavailable: lacking } = self.measured();
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
                format!("change that in {}", place.file),
            ),
            None => (
                String::new(),
                "allow less with `minimum = \"none\"` under `[commands]` in the configuration"
                    .to_owned(),
            ),
        };
        let reason = format!(
            "commands run in a sandbox of level `{minimum}` or better{demanded}, and this machine \
                does not have it: {}.",
            why.join("; ")
        );
        let remedy = format!(
            "The user can install what is missing, or {allow_less}; `cofferdam doctor` tells more."
        );
        Err(Denial {
            place: self.rules.required_by.clone(),
            ..Denial::new(DenialCode::NoSandbox, reason, remedy)
        })
    }

    /// How commands run, for who is about to approve one.
    pub fn describe(&self) -> String {
        match self.allowed_level() {
            Ok(SandboxLevel::None) => "WITHOUT a sandbox, with your rights".to_owned(),
            Ok(level) => {
                let network = if self.rules.network { "WITH the network" } else { "no network" };
                format!("in the sandbox `{level}`, {network}")
            }
            Err(_) => "which will be refused, since this machine has no sandbox for it".to_owned(),
        }
    }

    /// In which sandbox commands run, and what they reach there that tools do not; in words.
    pub fn describe_access(&self) -> String {
        let secrets = match self.allowed_level() {
            Ok(SandboxLevel::Kernel) => ", and can read .env files and keys in the workspace",
            Ok(SandboxLevel::None) => ", and can read and send whatever you can",
            Ok(SandboxLevel::Full) | Err(_) => "",
        };
        format!("{}{secrets}", self.describe())
    }

    /// What is open at the level in force although one might think otherwise; in words.
    pub fn known_gaps(&self) -> Vec<&'static str> {
        let level = self.measured().level;
        let mut open: Vec<&'static str> = match level {
            SandboxLevel::Full => Vec::new(),
            SandboxLevel::Kernel => vec![
                "reading .env files and keys that lie in the workspace",
                "reading tokens in settings that lie in the workspace, such as `.git/config` and \
                    `.cargo/config.toml`",
                "permissions and times of your files outside (not what is in them)",
                "names of files outside, and of your processes",
            ],
            SandboxLevel::None => vec!["everything that you can do"],
        };
        open.extend(os::known_gaps(level));
        if self.rules.network && level != SandboxLevel::None {
            open.push("the network, as you configured it");
        }
        open.push("what you run from the workspace later");
        open
    }

    /// Everything for one command, at a level that was admitted.
    pub(in crate::sandbox) fn plan_spawn(
        &self,
        task: CommandJob,
        level: SandboxLevel,
        CommandLocation { workspace, directory, protected }: CommandLocation<'_>,
        network: bool,
    ) -> std::io::Result<SpawnPlan> {
        if workspace.to_str().is_none() {
            return Err(std::io::Error::other(
                "the path of the workspace is not UTF-8; rename the directory, or choose another \
                    workspace",
            ));
        }
        let home = user_home();
        let rules = CommandRules { network, ..self.rules.clone() };
        let mut places = visible_paths::find_command_paths(&rules, home.as_deref(), |name| {
            std::env::var_os(name)
        });
        let own = self.real_own_directories();
        places.read.retain(|place| may_open(place, &own, &rules));
        places.read.extend(worktree::find_outer_repository(workspace));
        let digest = task.digest();
        let order = SupervisorRequest {
            job: task,
            digest: digest.clone(),
            level,
            program: self.program.clone(),
            bubblewrap: if level == SandboxLevel::Full {
                self.bubblewrap().as_ref().ok().cloned()
            } else {
                None
            },
            workspace: workspace.to_owned(),
            directory: directory.to_owned(),
            paths: places,
            opened_paths: rules.read.iter().chain(&rules.write).cloned().collect(),
            home,
            set_aside: self.set_aside.clone(),
            network,
            limits: rules.limits,
            protected: protected.clone(),
            user_settings: UserSettings::of_this_process(),
            own: self.own.clone(),
        };
        let mut order = serde_json::to_vec(&order)?;
        order.push(b'\n');
        let (link, theirs) = UnixStream::pair()?;
        let mut supervisor = Command::new(&self.program);
        supervisor
            .arg0("cofferdam")
            .arg("guard-command")
            .arg(&self.set_aside)
            .env_clear()
            .envs(environment::command_environment(std::env::vars_os()))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(SpawnPlan { supervisor, link, request: order, digest })
    }
}

/// Whether commands may read a place: not if this program keeps its own files there, unless the
/// configuration names it, which is checked when it is read.
fn may_open(place: &Path, own: &[PathBuf], rules: &CommandRules) -> bool {
    let real = place.canonicalize().unwrap_or_else(|_| place.to_owned());
    // The system's programs are in directories such as `/usr` whatever else is.
    let is_top = real.components().count() <= 2;
    rules.read.iter().any(|read| read == place)
        || !own.iter().any(|own| real.starts_with(own) || !is_top && own.starts_with(&real))
}

fn user_home() -> Option<PathBuf> {
    std::env::home_dir()
        .filter(|home| home.is_absolute() && home.parent().is_some() && home.to_str().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_opens_the_directories_of_this_program() {
        let home = tempfile::tempdir().expect("a directory");
        let home = home.path().canonicalize().expect("it is there");
        let own = [home.join(".cache/cofferdam")];
        std::fs::create_dir_all(own[0].join("toolchains")).expect("it is made");
        std::fs::create_dir_all(home.join("bin")).expect("it is made");
        std::os::unix::fs::symlink(&own[0], home.join("link")).expect("a link");
        let mut rules = CommandRules::default();
        let opens = |path: &str, rules: &CommandRules| may_open(&home.join(path), &own, rules);
        for path in [".cache", ".cache/cofferdam", ".cache/cofferdam/toolchains", "link"] {
            assert!(!opens(path, &rules), "{path}");
        }
        assert!(opens("bin", &rules) && may_open(Path::new("/usr"), &own, &rules));
        rules.read.push(home.join(".cache"));
        assert!(opens(".cache", &rules));
    }
}
