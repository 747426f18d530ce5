//! Files of settings in which package managers and git keep credentials. A tool reads of them what
//! a command does: a copy without secrets. Nothing is read for files of other names.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use cap_std::fs::Dir;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::file_refusal::FileRefusal;
use crate::policy::{Denial, DenialCode};
use crate::sandbox::rooted_fs;
use cofferdam_confine::{MAX_SETTINGS_SIZE, SettingsFormat};

/// What a file of settings holds.
enum SettingsContent {
    /// Nothing that is kept from tools.
    Plain,
    /// Secrets; the text without them.
    Secret(String),
    /// Something of which nobody can tell.
    Unknown,
}

/// What a tool reads of an open file of the workspace: the file itself, or a copy without secrets
/// and what is said about it.
pub(in crate::sandbox) fn without_secrets(
    root: &Dir,
    place: &str,
    mut file: File,
) -> Result<(File, Option<Denial>), FileRefusal> {
    let Some(format) = format_of(root, place) else { return Ok((file, None)) };
    let text = match read(format, &mut file)? {
        SettingsContent::Plain => return Ok((file, None)),
        SettingsContent::Secret(text) => text,
        SettingsContent::Unknown => {
            let reason = format!(
                "'{place}' is hidden: it may hold credentials, and it is too large or not UTF-8, \
                    so that they cannot be taken out of it."
            );
            return Err(Denial::new(DenialCode::Hidden, reason, USER_REMEDY).into());
        }
    };
    let mut copy = tempfile::tempfile()?;
    copy.write_all(text.as_bytes())?;
    copy.rewind()?;
    let reason = format!("'{place}' holds credentials, which are not in what tools read of it.");
    Ok((copy, Some(Denial::without_remedy(DenialCode::Hidden, reason))))
}

/// Checks that no change of a file loses, moves or shows credentials that tools do not see.
pub(super) fn check_change(root: &Dir, place: &str) -> Result<(), FileRefusal> {
    let Some(format) = format_of(root, place) else { return Ok(()) };
    let mut file = match rooted_fs::open(root, place) {
        Ok((file, _)) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match read(format, &mut file)? {
        SettingsContent::Plain => Ok(()),
        SettingsContent::Secret(_) | SettingsContent::Unknown => {
            let reason = format!("'{place}' holds credentials that tools do not see.");
            Err(FileRefusal::Denied(
                ErrorCode::Access,
                Denial::new(DenialCode::Protected, reason, USER_REMEDY),
            ))
        }
    }
}

const USER_REMEDY: &str = "Ask the user to edit it.";

fn format_of(root: &Dir, place: &str) -> Option<SettingsFormat> {
    SettingsFormat::of_workspace_file(place, |beside| {
        rooted_fs::symlink_metadata(root, beside).is_ok()
    })
}

fn read(format: SettingsFormat, file: &mut File) -> io::Result<SettingsContent> {
    let mut bytes = Vec::new();
    (&*file).take(MAX_SETTINGS_SIZE + 1).read_to_end(&mut bytes)?;
    file.rewind()?;
    if bytes.len() as u64 > MAX_SETTINGS_SIZE {
        return Ok(SettingsContent::Unknown);
    }
    let Ok(text) = String::from_utf8(bytes) else { return Ok(SettingsContent::Unknown) };
    // Only what is missing tells of a secret, and not another end of a line.
    let text = text.replace("\r\n", "\n");
    let (clean, has_changed) = format.clean_text(&text);
    Ok(if has_changed { SettingsContent::Secret(clean) } else { SettingsContent::Plain })
}
