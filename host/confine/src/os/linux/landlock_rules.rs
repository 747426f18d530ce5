//! Landlock rules, which limit the files that this process and its descendants can open and the
//! processes that they can signal.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use rustix::fs::{FileType, fstat};

use crate::error::StepProblem;
use crate::protocol::SocketAccess;
use crate::{CommandPaths, ConfineError, ConfineStep, PrerequisiteError};

/// The supported Landlock versions, newest first. Version 4 is the minimum because it covers TCP.
const ABI_VERSIONS: [ABI; 3] = [ABI::V6, ABI::V5, ABI::V4];

/// Devices that reveal nothing about the machine.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Applies the rules to this process permanently.
///
/// # Errors
/// The kernel does not enforce all of the rules.
pub(super) fn apply(places: &CommandPaths, sockets: SocketAccess) -> Result<(), ConfineError> {
    let version = supported_abi().ok_or_else(|| {
        ConfineError::new(ConfineStep::ApplyLandlock, PrerequisiteError::Landlock)
    })?;
    let all = AccessFs::from_all(version);
    let rules = || -> Result<RulesetStatus, landlock::RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)?;
        if version == ABI::V6 {
            ruleset = ruleset.scope(Scope::from_all(version))?;
        }
        if sockets == SocketAccess::Pairs {
            ruleset = ruleset.handle_access(AccessNet::from_all(version))?;
        }
        let mut created = ruleset.create()?;
        let write = all & !(AccessFs::MakeBlock | AccessFs::MakeChar);
        for (paths, access) in [
            (&places.read, AccessFs::from_read(version)),
            (&places.write, write),
            (&places.list, AccessFs::ReadDir.into()),
        ] {
            for path in paths {
                // A path that vanished meanwhile needs no rule.
                let Ok(open) = PathFd::new(path) else { continue };
                let found = fstat(&open).map(|found| FileType::from_raw_mode(found.st_mode));
                let access = match found {
                    Ok(FileType::Directory) => access,
                    Ok(_) | Err(_) => access & AccessFs::from_file(version),
                };
                created = created.add_rule(PathBeneath::new(open, access))?;
            }
        }
        for path in DEVICES {
            let Ok(open) = PathFd::new(path) else { continue };
            created =
                created.add_rule(PathBeneath::new(open, write & AccessFs::from_file(version)))?;
        }
        Ok(created.restrict_self()?.ruleset)
    };
    match rules() {
        Ok(RulesetStatus::FullyEnforced) => Ok(()),
        Ok(RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced) => {
            Err(ConfineError::new(ConfineStep::ApplyLandlock, StepProblem::NotFullyEnforced))
        }
        Err(error) => Err(ConfineError::new(ConfineStep::ApplyLandlock, error)),
    }
}

/// Returns the newest version that this kernel supports completely.
pub(super) fn supported_abi() -> Option<ABI> {
    ABI_VERSIONS.into_iter().find(|version| {
        let fits = || -> Result<(), landlock::RulesetError> {
            let mut ruleset = Ruleset::default()
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::from_all(*version))?;
            ruleset = ruleset.handle_access(AccessNet::from_all(*version))?;
            if *version == ABI::V6 {
                ruleset = ruleset.scope(Scope::from_all(*version))?;
            }
            ruleset.create().map(drop)
        };
        fits().is_ok()
    })
}
