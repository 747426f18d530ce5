//! The workspace of a server: chosen by the user, or the root of the client.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam::Host;

use crate::resources::path_of_uri;

/// Where the workspace of a server comes from.
#[derive(Clone)]
pub enum WorkspaceChoice {
    /// The user chose it.
    Fixed(Box<Host>),
    /// It is the root of the client if there is exactly one, and otherwise the current directory of
    /// the server.
    OfClient(HostOpener),
}

/// A function that opens a host for a directory, or for the current directory.
type OpenHost = dyn Fn(Option<&Path>) -> Result<Host, String> + Send + Sync;

/// Opens the host when the root of the client is known.
#[derive(Clone)]
pub struct HostOpener {
    open: Arc<OpenHost>,
    home: Option<PathBuf>,
}

impl HostOpener {
    /// Creates an opener. `open` opens a host for a directory, or for the current directory.
    /// A root that contains the directory `home` is refused.
    pub fn new(
        home: Option<PathBuf>,
        open: impl Fn(Option<&Path>) -> Result<Host, String> + Send + Sync + 'static,
    ) -> Self {
        Self { open: Arc::new(open), home }
    }

    /// Opens the host for the roots of a client.
    pub(crate) fn open(&self, roots: &[String]) -> Result<Host, String> {
        let root = match roots {
            [root] => Some(path_of_uri(root).ok_or_else(|| {
                let root = cofferdam::terminal_escape::escape_line(root, 200);
                format!(
                    "cannot use the root `{root}` of the client as the workspace: it is not a \
                        local file\nhint: choose a project directory with `-C DIR`"
                )
            })?),
            _ => None,
        };
        if let Some(root) = &root {
            check_extent(root, self.home.as_deref())?;
        }
        (self.open)(root.as_deref())
    }
}

impl fmt::Debug for HostOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostOpener").field("home", &self.home).finish_non_exhaustive()
    }
}

impl fmt::Debug for WorkspaceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(_) => f.write_str("Fixed"),
            Self::OfClient(opener) => f.debug_tuple("OfClient").field(opener).finish(),
        }
    }
}

/// Directories that belong to the system as a whole.
const SYSTEM_TREES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/sbin",
    "/usr/share",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/run",
    "/var/spool",
    // macOS
    "/Applications",
    "/Library",
    "/System",
    "/private/etc",
    "/private/var/db",
];
/// Directories that can contain projects, but are none.
const PARENTS_OF_PROJECTS: &[&str] = &[
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/private",
    "/private/tmp",
    "/private/var",
    "/root",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/local",
    "/usr/src",
    "/var",
    "/var/tmp",
    "/Users",
    "/Volumes",
];

/// Checks that a root is a project, and neither most files of the user nor a part of the system.
fn check_extent(root: &Path, home: Option<&Path>) -> Result<(), String> {
    let whole = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    // The home of a service can be below `/var/lib`.
    let is_in_home = home.as_ref().is_some_and(|home| whole != *home && whole.starts_with(home));
    let tree = SYSTEM_TREES.iter().find(|tree| whole.starts_with(tree));
    if let (Some(tree), false) = (tree, is_in_home) {
        return Err(refuse_root(root, &format!("it is in {tree}, a directory of the system")));
    }
    if PARENTS_OF_PROJECTS.iter().any(|parent| whole == Path::new(parent)) {
        return Err(refuse_root(root, "it is not a project, but a directory for many of them"));
    }
    let what = match home {
        _ if whole == Path::new("/") => "the root of the file system",
        Some(home) if home == whole => "your home directory",
        Some(home) if home.starts_with(&whole) => "a parent of your home directory",
        Some(_) | None => return Ok(()),
    };
    let why = format!("it is {what}, so tools and commands could access most of your files");
    Err(refuse_root(root, &why))
}

fn refuse_root(root: &Path, why: &str) -> String {
    let root = cofferdam::terminal_escape::escape_line(&root.display().to_string(), 200);
    format!(
        "cannot use the root {root} of the client as the workspace: {why}\nhint: choose a project \
            directory with `-C DIR`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_with_most_files_of_the_user_is_refused() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let home = directory.path().join("home/ann");
        std::fs::create_dir_all(home.join("project")).expect("create it");
        std::os::unix::fs::symlink("ann", directory.path().join("home/link")).expect("link it");
        let check = |root: &Path| check_extent(root, Some(&home));
        for refused in ["home/ann", "home", "", "home/link", "home/ann/project/.."] {
            let refused = directory.path().join(refused);
            let problem = check(&refused).expect_err("it is refused");
            assert!(problem.contains("hint: "), "{problem}");
        }
        assert!(check(Path::new("/")).is_err());
        assert_eq!(check(&home.join("project")), Ok(()));
        for refused in ["/tmp", "/etc", "/proc/self/fd", "/sys", "/dev/shm", "/usr/lib", "/var"] {
            assert!(check(Path::new(refused)).is_err(), "{refused}");
        }
        assert_eq!(check(Path::new("/usr/src/project")), Ok(()));
    }

    #[test]
    fn only_a_single_local_root_becomes_the_workspace() {
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let opener = HostOpener::new(None, move |root| {
            seen.lock().expect("unpoisoned").push(root.map(Path::to_owned));
            Err("opened".to_owned())
        });
        let open = |roots: &[&str]| {
            let roots: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
            opener.open(&roots).err().expect("no host is opened here")
        };
        assert_eq!(open(&["file:///work/a%20b"]), "opened");
        assert_eq!(open(&[]), "opened");
        assert_eq!(open(&["file:///a", "file:///b"]), "opened");
        assert!(open(&["https://a.org/"]).contains("not a local file"));
        assert!(open(&["file:///"]).contains("the root of the file system"));
        assert_eq!(
            *asked.lock().expect("unpoisoned"),
            [Some(PathBuf::from("/work/a b")), None, None]
        );
    }
}
