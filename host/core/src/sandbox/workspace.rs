//! The workspace directory, and the `workspace` interface: walks that read many files at once.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wasmtime::component::{HasData, Resource, ResourceTable};

use super::call_state::{CallState, not_granted};
use super::contract::v0_2::workspace as wit;
use super::files::{CallFiles, FileRefusal, PathAccessGuard, WorkspaceFilesView, without_secrets};
use super::rooted_fs;
use super::walk::{OpenWalkCount, TreeWalkHandle, WalkError};
use crate::policy::{
    Denial, DenialCode, FileGrant, PathError, PathProtection, ProtectedPaths, WorkspacePath,
};
use cofferdam_confine::{HostEnvironment, IncludedSettings, SettingsRoots, git};

/// The directory that tools work in.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    dir: cap_std::fs::Dir,
    guard: PathAccessGuard,
    /// The directory for temporary files of the host.
    temp_dir: PathBuf,
    /// The git settings that apply in every repository of the user.
    user_settings: git::UserSettings,
    included_settings: Mutex<KnownIncludes>,
    /// Whether links may have changed since the last scan.
    has_new_links: AtomicBool,
}

/// The files that settings include, with the places where the search for them starts.
#[derive(Debug, Default)]
struct KnownIncludes {
    repositories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    /// `None` before the first search.
    found: Option<Arc<IncludedSettings>>,
}

/// The paths that git settings name in a workspace.
#[derive(Debug, Default)]
pub(super) struct GitNamedWorkspacePaths {
    pub(super) paths: Vec<PathBuf>,
    /// The directories of repositories whose settings exceed a limit and so may name more.
    pub(super) not_analysed: Vec<PathBuf>,
    /// The first limit that was exceeded.
    pub(super) problem: Option<String>,
}

/// An error that means that a directory cannot be the workspace.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {path} as the workspace: {source}")]
pub struct WorkspaceError {
    path: PathBuf,
    source: std::io::Error,
}

impl Workspace {
    /// Opens a directory. Files are opened relative to it, so renaming it later has no effect.
    ///
    /// `environment` names the git settings of the user, which may name paths of the workspace, and
    /// the directory for temporary files.
    pub fn open(path: &Path, environment: &HostEnvironment) -> Result<Self, WorkspaceError> {
        let problem = |source| WorkspaceError { path: path.to_owned(), source };
        let root = path.canonicalize().map_err(problem)?;
        let dir = cap_std::fs::Dir::open_ambient_dir(&root, cap_std::ambient_authority())
            .map_err(problem)?;
        Ok(Self {
            root,
            dir,
            guard: PathAccessGuard::default(),
            temp_dir: environment.temp_dir.clone(),
            user_settings: git::UserSettings::new(environment),
            included_settings: Mutex::default(),
            has_new_links: AtomicBool::new(true),
        })
    }

    /// Replaces the built-in list of protected paths. The hooks and further settings that the
    /// settings of the repository name are protected too.
    pub fn with_protected_paths(self, paths: ProtectedPaths) -> Self {
        let mut named = self.named_by_git(&[PathBuf::new()]).paths;
        named.extend(git::control_link_targets(&self.root, Path::new(".git")));
        let named = named.iter().filter_map(|path| WorkspacePath::parse(path.to_str()?, None).ok());
        let paths =
            named.fold(paths, |paths, path| paths.with_path(&path, PathProtection::ReadOnly));
        Self { guard: PathAccessGuard::new(paths), ..self }
    }

    /// Returns the paths that git settings name for git to run: those outside of the workspace, and
    /// those of the repositories in `tops`. Settings that cannot be read name nothing here;
    /// commands are refused then.
    pub(super) fn named_by_git(&self, tops: &[PathBuf]) -> GitNamedWorkspacePaths {
        let mut found = GitNamedWorkspacePaths::default();
        let settings = git::GitNamedPaths::new(&self.root, &self.user_settings);
        let Ok(mut settings) =
            settings.map_err(|problem| found.problem = Some(problem.to_string()))
        else {
            return found;
        };
        match settings.outside_paths() {
            Ok(named) => found.paths.extend(named),
            Err(problem) if settings.take_exceeded() => found.problem = Some(problem.to_string()),
            Err(_) => {}
        }
        settings.begin_look();
        for top in tops {
            let dot_git = top.join(".git");
            let is_bare = fs::symlink_metadata(self.root.join(&dot_git)).is_err();
            match settings.of_repository(top, if is_bare { top } else { &dot_git }) {
                Ok(named) => found.paths.extend(named),
                Err(problem) if settings.take_exceeded() => {
                    found.problem.get_or_insert(problem.to_string());
                    found.not_analysed.push(top.clone());
                }
                // git does not run in such a repository either.
                Err(_) => {}
            }
        }
        found
    }

    /// Sets the repositories and the further settings files that a scan of the workspace found.
    /// Their includes count too.
    pub(crate) fn set_settings_roots(&self, repositories: Vec<PathBuf>, files: Vec<PathBuf>) {
        let mut known = self.lock_includes();
        if known.repositories != repositories || known.files != files {
            *known = KnownIncludes { repositories, files, found: None };
        }
    }

    /// Searches for included settings again if a settings file has changed.
    pub(super) fn refresh_included_settings(&self) {
        let mut known = self.lock_includes();
        if known.found.as_ref().is_none_or(|found| !found.is_current()) {
            known.found = Some(Arc::new(self.find_included(&known)));
        }
    }

    /// Returns the files that settings include, as of the last search.
    pub(super) fn included_settings(&self) -> Arc<IncludedSettings> {
        let mut known = self.lock_includes();
        if let Some(found) = &known.found {
            return Arc::clone(found);
        }
        let found = Arc::new(self.find_included(&known));
        known.found = Some(Arc::clone(&found));
        found
    }

    fn find_included(&self, known: &KnownIncludes) -> IncludedSettings {
        IncludedSettings::find(SettingsRoots {
            root: &self.root,
            user: &self.user_settings,
            repositories: &known.repositories,
            files: &known.files,
        })
    }

    fn lock_includes(&self) -> MutexGuard<'_, KnownIncludes> {
        self.included_settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the guard that denies access even with a permission.
    pub(super) fn guard(&self) -> &PathAccessGuard {
        &self.guard
    }

    /// Returns the absolute path of the directory, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory for temporary files of the host.
    pub(super) fn temp_dir(&self) -> &Path {
        &self.temp_dir
    }

    /// Marks links as possibly changed, because a command runs or a tool created one.
    pub fn links_may_change(&self) {
        self.has_new_links.store(true, Ordering::SeqCst);
    }

    /// Returns whether links may have changed since the last call of this method.
    pub(super) fn take_new_links(&self) -> bool {
        self.has_new_links.swap(false, Ordering::SeqCst)
    }

    /// Returns the open directory, for opening files below it.
    pub(super) fn dir(&self) -> &cap_std::fs::Dir {
        &self.dir
    }

    /// Reads the text of a file for the host's own use, and whether there is more. A file larger
    /// than `max_bytes` is cut after its last complete line. Returns `None` if the path does not
    /// exist, is not a file, or cannot be read.
    ///
    /// # Errors
    ///
    /// Returns a denial if tools may not read the file. It may be a link to a hidden file, whoever
    /// created it.
    pub fn read_prefix(
        self: &Arc<Self>,
        path: &str,
        max_bytes: usize,
    ) -> Result<Option<(String, bool)>, Denial> {
        let Some(mut bytes) = self.read_bytes(path, max_bytes)? else { return Ok(None) };
        let has_more = bytes.len() > max_bytes;
        if has_more {
            bytes.truncate(max_bytes);
            let whole =
                bytes.iter().rposition(|byte| *byte == b'\n').map_or(max_bytes, |last| last + 1);
            bytes.truncate(whole);
        }
        Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), has_more)))
    }

    /// Reads at most `max_bytes` bytes of a file, and one more if there are more, as a tool with
    /// the permission to read files would see them. Returns `None` if the path does not exist, is
    /// not a file, or cannot be read.
    ///
    /// # Errors
    ///
    /// Returns a denial if tools may not read the file. It may be a link to a hidden file, whoever
    /// created it.
    pub fn read_bytes(
        self: &Arc<Self>,
        path: &str,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, Denial> {
        let place = match WorkspaceFilesView::new(Arc::clone(self), None).resolve_existing(path) {
            Ok(Some(place)) => place,
            Err(FileRefusal::Denied(_, denial)) => return Err(denial),
            Ok(None) | Err(FileRefusal::Code(_) | FileRefusal::Io(_)) => return Ok(None),
        };
        self.guard.check_read(&place)?;
        self.refresh_included_settings();
        let mut bytes = Vec::new();
        let Ok((file, _)) = rooted_fs::open(&self.dir, &place) else { return Ok(None) };
        let file = match without_secrets(self, &place, file) {
            Ok((file, _)) => file,
            Err(FileRefusal::Denied(_, denial)) => return Err(denial),
            Err(FileRefusal::Code(_) | FileRefusal::Io(_)) => return Ok(None),
        };
        if file.take(max_bytes as u64 + 1).read_to_end(&mut bytes).is_err() {
            return Ok(None);
        }
        Ok(Some(bytes))
    }

    /// Returns why a tool with this permission may not access a path: a link in it is outside the
    /// workspace, it is a FIFO, a socket or a device, or it is hidden or protected. The sandbox
    /// checks this anyway; this function gives an error before anything runs.
    pub fn find_denial(self: &Arc<Self>, path: &WorkspacePath, grant: FileGrant) -> Option<Denial> {
        WorkspaceFilesView::new(Arc::clone(self), None).find_denial(path.as_fs_path(), grant)
    }

    /// Parses a path as a guest or a model writes it.
    pub fn parse(&self, text: &str) -> Result<WorkspacePath, PathError> {
        WorkspacePath::parse(text, Some(&self.root))
    }
}

/// The part of the state of a call that the `workspace` interface sees.
pub(super) struct WorkspaceView<'a> {
    walks: &'a mut CallWalks,
    files: &'a mut CallFiles,
    table: &'a mut ResourceTable,
}

/// The walks of one call.
pub(super) struct CallWalks {
    /// `None` without the permission to read files.
    workspace: Option<Arc<Workspace>>,
    open: OpenWalkCount,
}

/// Names [`WorkspaceView`] to the linker.
pub(super) struct HasWorkspaceView;

impl HasData for HasWorkspaceView {
    type Data<'a> = WorkspaceView<'a>;
}

impl WorkspaceView<'_> {
    pub(super) fn of(state: &mut CallState) -> WorkspaceView<'_> {
        WorkspaceView { walks: &mut state.walks, files: &mut state.files, table: &mut state.table }
    }
}

impl CallWalks {
    pub(super) fn new(workspace: Option<Arc<Workspace>>) -> Self {
        Self { workspace, open: OpenWalkCount::default() }
    }
}

impl wit::Host for WorkspaceView<'_> {
    fn open_walk(
        &mut self,
        options: wit::WalkOptions,
    ) -> wasmtime::Result<Result<WalkResource, wit::WorkspaceError>> {
        let Some(workspace) = &self.walks.workspace else {
            let denial = not_granted("read files", "read-files");
            return Ok(Err(WalkError::Denied(denial).into()));
        };
        let logs = self.files.activity_logs();
        match TreeWalkHandle::open(workspace, options.into(), &self.walks.open, logs) {
            Ok(walk) => Ok(Ok(self.table.push(walk)?)),
            Err(error) => Ok(Err(error.into())),
        }
    }
}

/// A guest's handle of a walk. Wasmtime traps the guest if it uses a handle that it does not own.
type WalkResource = Resource<TreeWalkHandle>;

impl wit::HostWalk for WorkspaceView<'_> {
    async fn next_entries(
        &mut self,
        walk: WalkResource,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<wit::Entry>, wit::WorkspaceError>> {
        let entries = self.table.get_mut(&walk)?.next_entries(limit).await;
        Ok(entries.map(|entries| entries.into_iter().map(Into::into).collect()).map_err(Into::into))
    }

    async fn next_files(
        &mut self,
        walk: WalkResource,
        max_bytes: u32,
    ) -> wasmtime::Result<Result<wit::Batch, wit::WorkspaceError>> {
        let batch = self.table.get_mut(&walk)?.next_files(max_bytes).await;
        Ok(batch.map(Into::into).map_err(Into::into))
    }

    fn problems(&mut self, walk: WalkResource) -> wasmtime::Result<Vec<String>> {
        Ok(self.table.get(&walk)?.problems())
    }

    fn drop(&mut self, walk: WalkResource) -> wasmtime::Result<()> {
        self.table.delete(walk)?;
        Ok(())
    }
}

pub(super) fn path_denied(problem: &PathError) -> Denial {
    Denial::without_remedy(DenialCode::OutsideWorkspace, problem.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::test_environment::open_workspace;

    #[test]
    fn r123_escaping_links_and_special_files_are_refused_with_the_reason() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let workspace = Arc::new(open_workspace(directory.path()));
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("out"))
            .expect("create the link");
        std::fs::write(directory.path().join("file"), "").expect("write the file");
        std::os::unix::fs::symlink("file", directory.path().join("in")).expect("create the link");
        let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("socket"))
            .expect("bind the socket");
        std::fs::write(directory.path().join(".env"), "").expect("write the file");
        std::os::unix::fs::symlink(
            directory.path().join("file"),
            directory.path().join("absolute"),
        )
        .expect("create the link");
        std::os::unix::fs::symlink(".env", directory.path().join("harmless"))
            .expect("create the link");
        let with = |path, grant| {
            workspace
                .find_denial(&workspace.parse(path).expect("parse the value"), grant)
                .map(|denial| denial.code)
        };
        let code = |path| with(path, FileGrant::Read);
        assert_eq!(code("out"), Some(DenialCode::OutsideWorkspace));
        assert_eq!(code("out/more"), Some(DenialCode::OutsideWorkspace));
        assert_eq!(code("socket"), Some(DenialCode::SpecialFile));
        assert_eq!(
            [code(".env"), code("harmless")],
            [Some(DenialCode::Hidden), Some(DenialCode::Hidden)]
        );
        assert_eq!([code("absolute"), code(".git/hooks/x")], [None, None]);
        assert_eq!(with(".git/hooks/x", FileGrant::ReadWrite), Some(DenialCode::Protected));
        std::fs::create_dir(directory.path().join(".git")).expect("create the directory");
        assert_eq!(
            with(".git", FileGrant::ReadWrite),
            None,
            "it is a directory, which may be looked into"
        );
        assert_eq!([code("file"), code("in"), code(""), code("missing")], [None, None, None, None]);
    }

    #[test]
    fn r123_the_host_reads_only_what_tools_may_read() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let workspace = Arc::new(open_workspace(directory.path()));
        let guide = directory.path().join("AGENTS.md");
        let read = || workspace.read_prefix("AGENTS.md", 8);
        assert_eq!(read(), Ok(None));
        std::fs::write(directory.path().join(".env"), "PASSWORD=x").expect("write the file");
        for (target, code) in
            [(".env", DenialCode::Hidden), ("/etc/passwd", DenialCode::OutsideWorkspace)]
        {
            std::os::unix::fs::symlink(target, &guide).expect("create the link");
            assert_eq!(read().map_err(|denial| denial.code), Err(code), "{target}");
            std::fs::remove_file(&guide).expect("remove the file");
        }
        std::fs::write(directory.path().join("docs.md"), "one\ntwo\nthree\n")
            .expect("write the file");
        std::os::unix::fs::symlink("docs.md", &guide).expect("create the link");
        assert_eq!(read(), Ok(Some(("one\ntwo\n".to_owned(), true))));
    }
}
