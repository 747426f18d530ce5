//! The directories of this program, which follow the XDG base directory specification.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use cofferdam::config::{HomeDirectoryError, UserDirectories, UserDirectoryError};
use cofferdam::sandbox::HostEnvironment;

/// Returns `$XDG_CONFIG_HOME/cofferdam`, `$XDG_CACHE_HOME/cofferdam` and
/// `$XDG_STATE_HOME/cofferdam`, or their defaults below the home directory.
///
/// A relative path in a variable is ignored, because a project could choose its content.
///
/// # Errors
///
/// If there is no home directory, or if another user can write the state directory, whose content
/// is trusted.
pub(super) fn for_current_user(
    environment: &HostEnvironment,
) -> Result<UserDirectories, UserDirectoryError> {
    // The crate reads the variables of this process itself.
    let base = etcetera::base_strategy::Xdg::new().map_err(|_| HomeDirectoryError)?;
    // Service accounts have a home such as `/dev/null`.
    let home = environment.home.as_deref().ok_or(HomeDirectoryError)?;
    if home.metadata().is_ok_and(|home| !home.is_dir()) {
        return Err(HomeDirectoryError.into());
    }
    let state = base.state_dir().unwrap_or_else(|| base.data_dir());
    let user_dirs = UserDirectories::from_base_dirs([base.config_dir(), base.cache_dir(), state])?;
    user_dirs.check_state_directory()?;
    Ok(user_dirs)
}

/// Returns the directories of a run, which replaces unusable ones and adds a warning for each.
///
/// Without a home directory, the run reads no configuration and no policy of the user.
///
/// # Errors
///
/// If another user can write the state directory, or if there is no home directory and no
/// temporary directory can be created.
pub(super) fn for_run(
    environment: &HostEnvironment,
    warnings: &mut Vec<String>,
) -> Result<UserDirectories, UserDirectoryError> {
    match for_current_user(environment) {
        Ok(user_dirs) => Ok(user_dirs.with_temporary_fallback(&environment.temp_dir, warnings)),
        Err(UserDirectoryError::NoHome(no_home)) => {
            let cache = environment.variable("XDG_CACHE_HOME");
            let user_dirs =
                UserDirectories::temporary(&environment.temp_dir, cache.as_deref().map(Path::new))
                    .map_err(|_| HomeDirectoryError)?;
            warnings.push(format!(
                "{no_home}; no configuration is read, and nothing is saved after this run"
            ));
            Ok(user_dirs)
        }
        Err(error) => Err(error),
    }
}

/// Returns the directory for the configuration of all programs: `$XDG_CONFIG_HOME`, or `.config` in
/// the home directory.
pub(super) fn config_directory(home: &Path) -> PathBuf {
    etcetera::base_strategy::Xdg::new()
        .map_or_else(|_| home.join(".config"), |base| base.config_dir())
}
