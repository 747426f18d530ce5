//! The request for one command, and the supervisor that executes it.

use std::path::{Path, PathBuf};

use super::{CommandLocation, CommandSandbox, SandboxSetup, outer_repository};
use crate::git::UserSettings;
use crate::path_resolver::PathResolver;
use crate::process::environment::command_environment;
use crate::process::ready_supervisor::{StartedSupervisor, SupervisorProgram, SupervisorSuccessor};
use crate::protocol::{
    CommandJob, NetworkAccess, SupervisedView, SupervisorOrder, SupervisorPreparation,
    SupervisorRequest,
};
use crate::reachable_places::{close_ways_into, remove_redirectable};
use crate::snapshot::SavedPath;
use cofferdam_policy::{CommandRules, ComponentDigest};

/// A command that is ready to be passed to a supervisor.
pub(crate) struct SpawnPlan {
    /// The request as one line of JSON.
    pub(crate) request: Vec<u8>,
    pub(crate) digest: ComponentDigest,
    /// What a supervisor could prepare for such commands.
    pub(crate) preparation: Option<SupervisorPreparation>,
}

impl CommandSandbox {
    /// Prepares one command in a sandbox of this kind.
    pub(crate) fn plan_spawn(
        &self,
        task: CommandJob,
        SandboxSetup { level, namespaces, view, streams }: SandboxSetup,
        CommandLocation { workspace, directory, protected, direct }: CommandLocation<'_>,
        network: NetworkAccess,
    ) -> std::io::Result<SpawnPlan> {
        if workspace.to_str().is_none() {
            return Err(std::io::Error::other(
                "the path of the workspace is not UTF-8; rename the directory, or choose another \
                    workspace",
            ));
        }
        let environment = &self.environment;
        let rules = &self.rules;
        let resolver = PathResolver::default();
        let mut places = self.find_command_paths(rules, &resolver);
        let own = self.real_own_directories(&resolver);
        places.read.retain(|place| may_open(place, &own, rules, &resolver));
        remove_redirectable(&mut places, workspace, &resolver);
        if view == SupervisedView::ReadOnly {
            close_ways_into(&mut places, workspace, level, &resolver);
        }
        let outer_repository = outer_repository(workspace, environment);
        places.read.extend(outer_repository.clone());
        let digest = task.digest();
        let order = SupervisorRequest {
            job: task,
            digest: digest.clone(),
            level,
            program: self.program.clone(),
            namespaces,
            workspace: workspace.to_owned(),
            directory: directory.to_owned(),
            paths: places,
            opened_paths: rules.read.iter().chain(&rules.write).cloned().collect(),
            outer_repository,
            home: environment.command_home().map(Path::to_owned),
            temp_dir: SavedPath::of(&environment.temp_dir),
            set_aside: self.set_aside.clone(),
            network,
            limits: rules.limits,
            protected: protected.clone(),
            user_settings: UserSettings::new(environment),
            own: self.own.clone(),
            direct: match &view {
                SupervisedView::Layer(_) => {
                    direct.iter().map(|path| path.as_str().into()).collect()
                }
                SupervisedView::Direct | SupervisedView::ReadOnly => Vec::new(),
            },
            view,
            streams,
        };
        let preparation = SupervisorPreparation::for_request(&order);
        let mut request = serde_json::to_vec(&SupervisorOrder::Run(Box::new(order)))?;
        request.push(b'\n');
        Ok(SpawnPlan { request, digest, preparation })
    }

    /// Returns a supervisor that waits for the request of this plan, and what starts the next one.
    pub(crate) fn take_supervisor(
        &self,
        plan: &SpawnPlan,
    ) -> std::io::Result<(StartedSupervisor, SupervisorSuccessor)> {
        let program = SupervisorProgram {
            program: self.program.clone(),
            environment: command_environment(&self.environment.variables, &self.passed),
        };
        let started = self.ready.take_or_start(&program, plan.preparation.as_ref())?;
        let successor = match self.keeps_ready {
            true => self.ready.successor(program, plan.preparation.clone()),
            false => SupervisorSuccessor::none(program),
        };
        Ok((started, successor))
    }
}

/// Returns whether commands may read a place.
///
/// A place with this program's own files is closed, unless the configuration names it. The
/// configuration is checked when it is read.
pub(super) fn may_open(
    place: &Path,
    own: &[PathBuf],
    rules: &CommandRules,
    resolver: &PathResolver,
) -> bool {
    let real = resolver.real(place);
    // A top-level directory such as `/usr` stays open even if this program's files are below it,
    // because it holds the system's programs.
    let is_top = real.components().count() <= 2;
    rules.read.iter().any(|read| read == place)
        || !own.iter().any(|own| real.starts_with(own) || !is_top && own.starts_with(&real))
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
        let resolver = PathResolver::default();
        let may_open = |path: &Path, rules: &CommandRules| may_open(path, &own, rules, &resolver);
        let opens = |path: &str, rules: &CommandRules| may_open(&home.join(path), rules);
        for path in [".cache", ".cache/cofferdam", ".cache/cofferdam/toolchains", "link"] {
            assert!(!opens(path, &rules), "{path}");
        }
        assert!(opens("bin", &rules) && may_open(Path::new("/usr"), &rules));
        rules.read.push(home.join(".cache"));
        assert!(opens(".cache", &rules));
    }
}
