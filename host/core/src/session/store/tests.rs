use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};

use super::super::scripted_run::{WORKSPACE, only_session, session_with_every_event};
use super::*;

fn no_redaction() -> RedactSecrets {
    Box::new(str::to_owned)
}

fn new_store(temp: &tempfile::TempDir) -> SessionStore {
    SessionStore::new(temp.path().join("sessions"))
}

fn create(store: &SessionStore, workspace: &str) -> SessionId {
    store
        .create_session(Path::new(workspace), no_redaction())
        .expect("created")
        .journal
        .id()
        .clone()
}

#[test]
fn r109_files_have_mode_0600_in_directories_of_mode_0700() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    create(&store, WORKSPACE);
    let entry = only_session(&store);
    let mode = |path: &Path| fs::metadata(path).expect("present").mode() & 0o777;
    assert_eq!(mode(entry.journal_path()), 0o600);
    assert_eq!(mode(entry.journal_path().parent().expect("temporary directory")), 0o700);
    assert_eq!(mode(&store.directory), 0o700);
    fs::set_permissions(&store.directory, fs::Permissions::from_mode(0o755))
        .expect("private directory");
    assert!(matches!(
        store.create_session(Path::new(WORKSPACE), no_redaction()),
        Err(SessionError::NotPrivate { .. })
    ));
}

#[test]
fn r109_directories_that_others_can_write_and_links_are_not_used() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    create(&store, WORKSPACE);
    let entry = only_session(&store);
    let project = entry.journal_path().parent().expect("a directory").to_owned();
    let uses = |entry: &StoredSession| {
        let workspace = Path::new(WORKSPACE);
        let scopes = [SessionScope::Project(workspace), SessionScope::All];
        let listed = scopes.map(|scope| store.list(scope).is_ok());
        let found = store.find(SessionScope::Project(workspace), entry.id.as_str()).is_ok();
        let is_resumed = entry.resume(workspace, no_redaction()).is_ok();
        (listed, found, is_resumed)
    };
    assert_eq!(uses(&entry), ([true; 2], true, true));
    for directory in [&store.directory, &project] {
        let set_mode = |mode| {
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).expect("mode set");
        };
        set_mode(0o777);
        assert_eq!(uses(&entry), ([false; 2], false, false), "{}", directory.display());
        set_mode(0o700);
        let elsewhere = temp.path().join("elsewhere");
        fs::rename(directory, &elsewhere).expect("renamed");
        std::os::unix::fs::symlink(&elsewhere, directory).expect("linked");
        assert_eq!(uses(&entry), ([false; 2], false, false), "{}", directory.display());
        fs::remove_file(directory).expect("removed");
        fs::rename(&elsewhere, directory).expect("renamed");
    }
    assert_eq!(uses(&entry), ([true; 2], true, true));
}

#[test]
fn r109_a_session_that_others_can_write_is_not_loaded() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    create(&store, WORKSPACE);
    let entry = only_session(&store);
    fs::set_permissions(entry.journal_path(), fs::Permissions::from_mode(0o666))
        .expect("private directory");
    let refused = entry
        .resume(Path::new(WORKSPACE), no_redaction())
        .map(|_| ())
        .expect_err("writable by others");
    assert!(refused.to_string().contains("is writable by other users"), "{refused}");
    fs::set_permissions(entry.journal_path(), fs::Permissions::from_mode(0o600))
        .expect("private directory");
    drop(entry.resume(Path::new(WORKSPACE), no_redaction()).expect("readable by the user only"));
}

#[test]
fn r109_a_session_has_only_one_writer() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    let first = store.create_session(Path::new(WORKSPACE), no_redaction()).expect("created");
    let entry = only_session(&store);
    let refused =
        entry.resume(Path::new(WORKSPACE), no_redaction()).map(|_| ()).expect_err("in use");
    assert!(matches!(&refused, SessionError::InUse(id) if *id == entry.id), "{refused}");
    assert!(refused.to_string().contains(entry.id.as_str()), "{refused}");
    assert!(matches!(entry.delete(), Err(SessionError::InUse(_))));
    drop(first);
    drop(entry.resume(Path::new(WORKSPACE), no_redaction()).expect("not in use any more"));
}

#[test]
fn r109_a_surviving_child_process_does_not_keep_the_lock() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    let session = store.create_session(Path::new(WORKSPACE), no_redaction()).expect("created");
    let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("starts");
    drop(session);
    let resumed = only_session(&store).resume(Path::new(WORKSPACE), no_redaction()).map(|_| ());
    child.kill().and_then(|()| child.wait()).expect("ends");
    resumed.expect("lock is not inherited");
}

#[test]
fn r109_a_session_that_was_deleted_is_not_written_to() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    create(&store, WORKSPACE);
    let entry = only_session(&store);
    let file = fs::OpenOptions::new().append(true).open(entry.journal_path()).expect("present");
    entry.delete().expect("not in use");
    assert!(matches!(
        journal::lock_file(file, entry.journal_path(), &entry.id),
        Err(SessionError::Deleted(_))
    ));
    assert!(store.list(SessionScope::All).expect("readable").is_empty());
}

#[test]
fn r114_complete_outputs_are_deleted_with_their_session() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    let outputs = || {
        let session = store.create_session(Path::new(WORKSPACE), no_redaction()).expect("created");
        private_dir::create(session.journal.outputs_directory()).expect("made");
        fs::write(session.journal.outputs_directory().join("bash-1.txt"), "all of it")
            .expect("written");
        (session.journal.id().clone(), session.journal.outputs_directory().to_owned())
    };
    let ((id, outputs_of_first), (_, outputs_of_second)) = (outputs(), outputs());
    assert_eq!(
        store.list(SessionScope::All).expect("readable").len(),
        2,
        "a directory of outputs is not a session"
    );
    store.find(SessionScope::All, id.as_str()).expect("present").delete().expect("not in use");
    assert!(!outputs_of_first.exists() && outputs_of_second.join("bash-1.txt").exists());
}

#[test]
fn r113_sessions_belong_to_their_project() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    let (here, there) = (create(&store, "/a/project"), create(&store, "/b/project"));
    let ids = |scope| {
        store.list(scope).expect("readable").into_iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(SessionScope::Project(Path::new("/a/project"))), [here]);
    assert_eq!(ids(SessionScope::Project(Path::new("/b/project"))), std::slice::from_ref(&there));
    assert_eq!(ids(SessionScope::Project(Path::new("/c"))), []);
    assert_eq!(ids(SessionScope::All).len(), 2);
    let not_here = store.find(SessionScope::Project(Path::new("/a/project")), there.as_str());
    assert!(matches!(not_here, Err(SessionError::NotFound(_))));
}

#[test]
fn r113_the_newest_comes_first() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    for age in [30, 10, 20] {
        let id = create(&store, WORKSPACE);
        let entry = store.find(SessionScope::All, id.as_str()).expect("present");
        let file = fs::OpenOptions::new().append(true).open(entry.journal_path()).expect("present");
        file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age))
            .expect("private directory");
    }
    let ages: Vec<_> = store
        .list(SessionScope::All)
        .expect("readable")
        .iter()
        .map(|e| e.modified.elapsed().expect("past").as_secs() / 10)
        .collect();
    assert_eq!(ages, [1, 2, 3]);
}

#[test]
fn r111_a_session_over_the_size_limit_is_refused() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    create(&store, WORKSPACE);
    let entry = only_session(&store);
    let file = fs::OpenOptions::new().append(true).open(entry.journal_path()).expect("present");
    file.set_len(1 << 30).expect("sparse file");
    for refused in
        [entry.load().map(drop), entry.resume(Path::new(WORKSPACE), no_redaction()).map(drop)]
    {
        let problem = refused.expect_err("too large").to_string();
        assert!(problem.contains("its size of 1024 MiB exceeds the limit of 1 MiB"), "{problem}");
    }
}

#[test]
fn r113_a_prefix_must_be_unique() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let store = new_store(&temp);
    create(&store, WORKSPACE);
    let entry = only_session(&store);
    let directory = entry.journal_path().parent().expect("temporary directory").to_owned();
    for name in [
        "aaaa00000000.jsonl",
        "aaab00000000.jsonl",
        "not-a-session.jsonl",
        "aaaa.jsonl",
        "aaaa00000000.txt",
    ] {
        fs::write(directory.join(name), "").expect("writable");
    }
    let find = |prefix: &str| {
        store
            .find(SessionScope::All, prefix)
            .map(|entry| entry.id.to_string())
            .map_err(|error| error.to_string())
    };
    assert_eq!(find("aaab"), Ok("aaab00000000".into()));
    let ambiguous = find("aaa").expect_err("ambiguous prefix");
    assert!(
        ambiguous.contains("aaaa00000000") && ambiguous.contains("aaab00000000"),
        "{ambiguous}"
    );
    for prefix in ["", "AAAA", "../", "not-a", "aaaa000000000"] {
        assert!(
            find(prefix)
                .is_err_and(|error| error.contains("no session has an ID that begins with")),
            "{prefix}"
        );
    }
}

#[tokio::test]
async fn the_newest_session_with_a_request_is_resumed() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (store, eventful, _) = session_with_every_event(temp.path()).await;
    create(&store, WORKSPACE);
    let newest = |workspace: &str| store.resume_newest(Path::new(workspace), no_redaction);
    let (session, open) = newest(WORKSPACE).expect("present");
    assert_eq!((session.journal.id(), open), (&eventful.id, Vec::new()));
    // The store also returns the model of each request, which is needed for its price.
    assert_eq!(session.request_models.len(), session.transcript.exchanges().len());
    assert!(matches!(newest("/elsewhere").map(drop), Err(SessionError::NoSessions)));
    // The only session of the project is in use.
    assert!(
        matches!(newest(WORKSPACE).map(drop), Err(SessionError::InUse(id)) if id == eventful.id)
    );
}

#[tokio::test]
async fn r111_a_damaged_session_is_reported_and_unchanged() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (store, entry, _) = session_with_every_event(temp.path()).await;
    let text = fs::read_to_string(entry.journal_path()).expect("readable").replacen(
        "{\"started\"",
        "{\"startet\"",
        1,
    ) + "{\"torn";
    fs::write(entry.journal_path(), &text).expect("writable");
    let line = text.lines().position(|line| line.starts_with("{\"startet\"")).expect("present") + 1;
    let refused =
        entry.resume(Path::new(WORKSPACE), no_redaction()).map(|_| ()).expect_err("damaged");
    assert!(
        matches!(&refused, SessionError::Damaged { line: reported, .. } if *reported == line),
        "{refused}"
    );
    let newest = store.resume_newest(Path::new(WORKSPACE), no_redaction).map(drop);
    assert!(
        matches!(newest, Err(SessionError::Damaged { .. })),
        "an older session is not resumed instead"
    );
    assert_eq!(fs::read_to_string(entry.journal_path()).expect("readable"), text);
}

#[tokio::test]
async fn a_session_that_names_another_workspace_or_is_among_the_wrong_ones_is_not_continued() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (_, entry, _) = session_with_every_event(temp.path()).await;
    let text = fs::read_to_string(entry.journal_path()).expect("readable");
    let of_other = text.replacen(WORKSPACE, "/elsewhere", 1);
    assert_ne!(of_other, text);
    fs::write(entry.journal_path(), &of_other).expect("writable");
    let refused = entry.resume(Path::new(WORKSPACE), no_redaction()).map(drop);
    assert!(matches!(refused, Err(SessionError::OtherWorkspace { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(entry.journal_path()).expect("readable"), of_other);
}
