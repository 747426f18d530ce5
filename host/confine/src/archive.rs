//! Archives of quarantined files: a tar archive encoded as one line of base64.
//!
//! No program reads such a file as configuration or code, whatever name a link gives it. Links
//! cannot reach the files inside it.

use std::io::{self, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::write::EncoderWriter;
use cap_std::fs::{
    Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _, Permissions,
    PermissionsExt as _,
};
use rustix::fs::OFlags;

/// The maximum depth of nested directories in an archive.
const MAX_DEPTH: usize = 100;
/// The block size of a tar archive, in bytes.
const BLOCK: usize = 512;
/// The maximum length of a name or of a link target in a tar header, in bytes.
const NAME_LEN: usize = 100;
/// The name of the first file in each archive. It states the original path.
const LABEL: &str = "set-aside.txt";
/// The name of a tar record that holds a longer name or link target for the next record.
const LONG_NAME: &str = "././@LongLink";

/// The limits on size, entries and time of an archive.
#[derive(Debug)]
pub(super) struct ArchiveBudget {
    pub(super) bytes: u64,
    pub(super) entries: usize,
    pub(super) deadline: Instant,
}

/// Writes `name` in `from`, with all its contents, to the new file `archive` in `to`.
///
/// `was` is the original path. The archive omits sockets, FIFOs and devices. Unreadable entries are
/// made readable first.
///
/// # Errors
/// The contents exceed the budget or cannot be read. A partial archive may remain.
pub(super) fn write_archive(
    from: &Dir,
    name: &Path,
    was: &Path,
    (to, archive): (&Dir, &Path),
    budget: &mut ArchiveBudget,
) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = to.open_with(archive, &options)?;
    let encoder = EncoderWriter::new(io::BufWriter::new(file), &STANDARD);
    let mut writer = ArchiveWriter { out: encoder, budget };
    let mut label = was.as_os_str().as_bytes().to_vec();
    label.push(b'\n');
    writer.add_record(Path::new(LABEL), (b'0', 0o600), &[], label.len() as u64)?;
    writer.add_padded(&label)?;
    let stored = PathBuf::from(was.file_name().unwrap_or(name.as_os_str()));
    writer.add_entry(from, name, &stored, MAX_DEPTH)?;
    writer.out.write_all(&[0; 2 * BLOCK])?;
    writer.out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(())
}

struct ArchiveWriter<'a, W: Write> {
    out: EncoderWriter<'static, GeneralPurpose, W>,
    budget: &'a mut ArchiveBudget,
}

impl<W: Write> ArchiveWriter<'_, W> {
    /// Adds an entry and recurses into directories, at most `levels` deep.
    fn add_entry(
        &mut self,
        from: &Dir,
        entry: &Path,
        stored: &Path,
        levels: usize,
    ) -> io::Result<()> {
        let too_much = || io::Error::from(io::ErrorKind::FileTooLarge);
        self.budget.entries = self.budget.entries.checked_sub(1).ok_or_else(too_much)?;
        if Instant::now() > self.budget.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let metadata = from.symlink_metadata(entry)?;
        let kind = metadata.file_type();
        let mode = metadata.mode() & 0o7777;
        if kind.is_symlink() {
            let target = from.read_link_contents(entry)?;
            self.add_record(stored, (b'2', mode), target.as_os_str().as_bytes(), 0)
        } else if kind.is_dir() {
            let levels = levels.checked_sub(1).ok_or_else(too_much)?;
            self.add_record(stored, (b'5', mode), &[], 0)?;
            let inner = opened(from, entry, &metadata, |path| from.open_dir(path))?;
            for name in inner.entries()? {
                let name = PathBuf::from(name?.file_name());
                self.add_entry(&inner, &name, &stored.join(&name), levels)?;
            }
            Ok(())
        } else if kind.is_file() {
            let size = metadata.len();
            self.budget.bytes = self.budget.bytes.checked_sub(size).ok_or_else(too_much)?;
            let mut options = OpenOptions::new();
            // A FIFO that replaced the file since the check must not block.
            let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
            options.read(true).custom_flags(flags);
            let file = opened(from, entry, &metadata, |path| from.open_with(path, &options))?;
            self.add_record(stored, (b'0', mode), &[], size)?;
            // The record has exactly the announced size, even if the file changed meanwhile.
            let copied = io::copy(&mut file.take(size), &mut self.out)?;
            io::copy(&mut io::repeat(0).take(size - copied), &mut self.out)?;
            self.pad(size)
        } else {
            Ok(())
        }
    }

    /// Adds the header of a record. Names that are too long get records of their own.
    fn add_record(
        &mut self,
        stored: &Path,
        (kind, mode): (u8, u32),
        target: &[u8],
        size: u64,
    ) -> io::Result<()> {
        let name = stored.as_os_str().as_bytes();
        for (long, kind) in [(name, b'L'), (target, b'K')] {
            if long.len() > NAME_LEN {
                let text = [long, &[0]].concat();
                let record = header(LONG_NAME.as_bytes(), (kind, 0o600), &[], text.len() as u64);
                self.out.write_all(&record)?;
                self.add_padded(&text)?;
            }
        }
        self.out.write_all(&header(name, (kind, mode), target, size))
    }

    fn add_padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.pad(bytes.len() as u64)
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        let missing = size.next_multiple_of(BLOCK as u64) - size;
        io::copy(&mut io::repeat(0).take(missing), &mut self.out).map(drop)
    }
}

/// Opens an entry, and first gives its owner access if needed.
fn opened<T>(
    from: &Dir,
    entry: &Path,
    metadata: &Metadata,
    open: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<T> {
    match open(entry) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mode = metadata.mode() & 0o7777 | 0o700;
            from.set_permissions(entry, Permissions::from_mode(mode))?;
            open(entry)
        }
        opened => opened,
    }
}

/// Builds the header of one record of a tar archive.
fn header(name: &[u8], (kind, mode): (u8, u32), target: &[u8], size: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8], most: usize| {
        let bytes = &bytes[..bytes.len().min(most)];
        header[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(0, name, NAME_LEN);
    put(100, format!("{mode:07o}").as_bytes(), 7);
    put(108, b"0000000", 7);
    put(116, b"0000000", 7);
    put(124, format!("{size:011o}").as_bytes(), 11);
    put(136, b"00000000000", 11);
    put(148, b"        ", 8);
    put(156, &[kind], 1);
    put(157, target, NAME_LEN);
    put(257, b"ustar  ", 7);
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    header[154] = 0;
    header
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_set_aside_comes_back_with_the_tools_of_every_system() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |path: &str| folder.path().join(path);
        let long = "n".repeat(150);
        std::fs::create_dir_all(at(&format!("plant/{long}/closed"))).expect("directories");
        std::fs::write(at("plant/text"), "some text\n").expect("a file");
        std::fs::write(at(&format!("plant/{long}/{long}")), vec![b'x'; 1000]).expect("a file");
        std::os::unix::fs::symlink("t".repeat(120), at("plant/link")).expect("a link");
        let mode = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(at(&format!("plant/{long}/closed")), mode).expect("it is set");
        let dir =
            Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("it opens");
        let mut budget = ArchiveBudget {
            bytes: 1 << 20,
            entries: 100,
            deadline: Instant::now() + Duration::from_secs(60),
        };
        let to = (&dir, Path::new("archive"));
        write_archive(&dir, Path::new("plant"), Path::new("a/.plant"), to, &mut budget)
            .expect("it is written");
        let text = std::fs::read_to_string(at("archive")).expect("it is text");
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)));
        // A path component this long exceeds the limit of file systems, so no program looks it up.
        assert!(text.find('/').is_none_or(|at| at > 255));
        std::fs::create_dir(at("out")).expect("a directory");
        let status = Command::new("sh")
            .args(["-c", "base64 -d archive | tar -xf - -C out"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .status();
        assert!(status.expect("it starts").success());
        let read = |path: &str| std::fs::read_to_string(at(path)).expect("it is there");
        assert_eq!(read("out/set-aside.txt"), "a/.plant\n");
        assert_eq!(read("out/.plant/text"), "some text\n");
        assert_eq!(read(&format!("out/.plant/{long}/{long}")).len(), 1000);
        let target = std::fs::read_link(at("out/.plant/link")).expect("it is a link");
        assert_eq!(target.as_os_str().len(), 120);
        let closed = at(&format!("out/.plant/{long}/closed"));
        assert_eq!(std::fs::metadata(closed).expect("it is there").mode() & 0o777, 0);
    }

    #[test]
    fn what_is_larger_than_the_budget_is_not_archived() {
        let folder = tempfile::tempdir().expect("a directory");
        let dir =
            Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("it opens");
        std::fs::create_dir(folder.path().join("plant")).expect("a directory");
        for name in ["a", "b"] {
            std::fs::write(folder.path().join("plant").join(name), "text").expect("a file");
        }
        for (number, (bytes, entries)) in [(7, 100), (8, 2), (8, 3)].into_iter().enumerate() {
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut budget = ArchiveBudget { bytes, entries, deadline };
            let name = PathBuf::from(number.to_string());
            let plant = Path::new("plant");
            let written = write_archive(&dir, plant, plant, (&dir, &name), &mut budget);
            assert_eq!(written.is_ok(), number == 2, "{bytes} {entries}");
        }
    }
}
