//! Settings files of git, of package managers and of build tools, which can hold credentials. A
//! tool reads the same copy without secrets that a command gets. Other files are examined only if
//! settings include them.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::file_refusal::FileRefusal;
use crate::policy::{Denial, DenialCode};
use crate::sandbox::rooted_fs;
use crate::sandbox::workspace::Workspace;
use cofferdam_confine::{MAX_SETTINGS_SIZE, SettingsFormat};

/// The content of a settings file.
enum SettingsContent {
    /// Text without secrets.
    Plain,
    /// Text with secrets; the value is the text without them.
    Secret(String),
    /// A file that is too large to examine, or not UTF-8.
    Unknown,
}

/// Returns the file that a tool reads in place of an open workspace file: the file, or a copy
/// without secrets together with a denial that names the file.
pub(in crate::sandbox) fn without_secrets(
    workspace: &Workspace,
    place: &str,
    mut file: File,
) -> Result<(File, Option<Denial>), FileRefusal> {
    let Some(format) = format_of(workspace, place) else { return Ok((file, None)) };
    let text = match read(format, &mut file)? {
        SettingsContent::Plain => return Ok((file, None)),
        SettingsContent::Secret(text) => text,
        SettingsContent::Unknown => {
            let reason = format!(
                "`{place}` is hidden: it may contain credentials, and they cannot be removed \
                    because the file is too large or not UTF-8."
            );
            return Err(Denial::new(DenialCode::Hidden, reason, USER_REMEDY).into());
        }
    };
    let mut copy = tempfile::tempfile_in(workspace.temp_dir())?;
    copy.write_all(text.as_bytes())?;
    copy.rewind()?;
    let reason =
        format!("`{place}` contains credentials, which are removed from the text that tools read.");
    Ok((copy, Some(Denial::without_remedy(DenialCode::Hidden, reason))))
}

/// Refuses a change to a settings file that holds credentials, since the change could lose, move or
/// reveal them.
pub(super) fn check_change(workspace: &Workspace, place: &str) -> Result<(), FileRefusal> {
    let Some(format) = format_of(workspace, place) else { return Ok(()) };
    let mut file = match rooted_fs::open(workspace.dir(), place) {
        Ok((file, _)) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match read(format, &mut file)? {
        SettingsContent::Plain => Ok(()),
        SettingsContent::Secret(_) | SettingsContent::Unknown => {
            let reason = format!(
                "`{place}` contains credentials that are hidden from tools, so tools cannot change \
                it."
            );
            Err(FileRefusal::Denied(
                ErrorCode::Access,
                Denial::new(DenialCode::Protected, reason, USER_REMEDY),
            ))
        }
    }
}

const USER_REMEDY: &str = "Ask the user to edit it.";

fn format_of(workspace: &Workspace, place: &str) -> Option<SettingsFormat> {
    let by_name = SettingsFormat::of_workspace_file(place, |beside| {
        rooted_fs::symlink_metadata(workspace.dir(), beside).is_ok()
    });
    by_name.or_else(|| workspace.included_settings().format(place))
}

fn read(format: SettingsFormat, file: &mut File) -> io::Result<SettingsContent> {
    let mut bytes = Vec::new();
    (&*file).take(MAX_SETTINGS_SIZE + 1).read_to_end(&mut bytes)?;
    file.rewind()?;
    if bytes.len() as u64 > MAX_SETTINGS_SIZE {
        return Ok(SettingsContent::Unknown);
    }
    let Ok(text) = String::from_utf8(bytes) else { return Ok(SettingsContent::Unknown) };
    // Line endings are normalized first, so that only a removed secret makes a difference.
    let text = text.replace("\r\n", "\n");
    let (clean, has_changed) = format.clean_text(&text);
    Ok(if has_changed { SettingsContent::Secret(clean) } else { SettingsContent::Plain })
}
