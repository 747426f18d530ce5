use std::fs;
use std::thread;

use super::super::test_log::{allowed_command, begin_log, call_end, call_identity, new_store};
use super::*;
use crate::tools::AuditSink as _;

/// Returns two logs, the second started after the first.
fn two_logs() -> (tempfile::TempDir, AuditStore, AuditLogName, AuditLogName) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    let [first, second] = [1, 2].map(|_| write_log(&store));
    (directory, store, first, second)
}

fn write_log(store: &AuditStore) -> AuditLogName {
    let (audit, _) = begin_log(store, false);
    audit.record_decision(&call_identity(), &allowed_command("make")).expect("recorded");
    audit.record_end(&call_identity(), &call_end(&[3]));
    audit.name().clone()
}

/// Returns the errors of each log, joined to one line.
fn all_errors(store: &AuditStore) -> Vec<String> {
    let logs = inspect_logs(store).expect("readable").logs;
    let broken = |log: &InspectedLog| {
        log.chain_break.as_ref().map(|broken| format!("line {} {}", broken.line, broken.reason))
    };
    logs.iter()
        .map(|log| broken(log).into_iter().chain(log.errors.clone()).collect::<Vec<_>>().join("; "))
        .collect()
}

fn read_lines(store: &AuditStore, name: &AuditLogName) -> Vec<String> {
    fs::read_to_string(store.log_path(name))
        .expect("readable")
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect()
}

#[test]
fn unchanged_logs_pass_verification() {
    let (_directory, store, ..) = two_logs();
    assert_eq!(all_errors(&store), ["", ""]);
    assert!(
        inspect_logs(&store)
            .expect("readable")
            .logs
            .iter()
            .all(|log| log.synced_records == 4 && !log.is_open)
    );
    let (audit, _) = begin_log(&store, false);
    let logs = inspect_logs(&store).expect("readable").logs;
    assert!(logs[2].is_intact() && logs[2].is_open && logs[2].synced_records == 0, "{:?}", logs[2]);
    drop(audit);
}

#[test]
fn a_changed_line_is_named() {
    let (_directory, store, first, _) = two_logs();
    let text = read_lines(&store, &first).concat();
    for (line, old, new) in
        [(1, "\"version\":1", "\"version\":2"), (3, "make", "mate"), (4, "\"ok\"", "\"no\"")]
    {
        fs::write(store.log_path(&first), text.replacen(old, new, 1)).expect("writable");
        assert_eq!(
            all_errors(&store)[0],
            format!("line {line} was changed: its hash does not match")
        );
    }
}

#[test]
fn a_missing_end_is_found_by_the_head_and_by_the_next_log() {
    let (_directory, store, first, _) = two_logs();
    let all = read_lines(&store, &first);
    fs::write(store.log_path(&first), all[..3].concat()).expect("writable");
    let missing = "its end is missing: it has 3 of 4 written lines".to_owned();
    let noticed = format!("line 4 of log {} changed after this log was started", first.as_str());
    assert_eq!(all_errors(&store), [missing, noticed.clone()]);
    // If the head was changed too, the log that was started next shows the removal.
    let end = HashChain::read(all[..3].concat().as_bytes()).end();
    fs::write(store.head_path(&first), format!("{:>20} {}\n", end.lines, end.hash))
        .expect("writable");
    assert_eq!(all_errors(&store), ["".to_owned(), noticed]);
}

#[test]
fn an_emptied_newest_log_is_found_whatever_its_head_says() {
    let (_directory, store, _, second) = two_logs();
    let (redact_and_cut, head) = (
        read_lines(&store, &second).concat(),
        fs::read_to_string(store.head_path(&second)).expect("readable"),
    );
    let nothing = format!("{:>20} {}\n", 0, "0".repeat(64));
    for log in ["", &redact_and_cut[..10]] {
        fs::write(store.log_path(&second), log).expect("writable");
        fs::write(store.head_path(&second), &head).expect("writable");
        assert_eq!(all_errors(&store)[1], "its end is missing: it has 0 of 4 written lines");
        for head in ["", &nothing] {
            fs::write(store.head_path(&second), head).expect("writable");
            assert_eq!(
                all_errors(&store)[1],
                "it has no records: it was emptied, or the machine stopped while it was created"
            );
        }
        fs::remove_file(store.head_path(&second)).expect("it is removed");
        assert_eq!(
            all_errors(&store)[1],
            "it has no records: it was emptied, or the machine stopped while it was created"
        );
    }
}

#[test]
fn a_run_that_is_killed_while_it_starts_its_log_leaves_nothing_broken() {
    let (_directory, store, _, _) = two_logs();
    let (last, _) = begin_log(&store, false);
    let [log, head] = [store.log_path(last.name()), store.head_path(last.name())];
    let begun = fs::read(&log).expect("readable");
    drop(last);
    let [new_log, new_head] = ["log.new", "head.new"].map(|name| store.directory().join(name));
    let first_line = begun.split_inclusive(|byte| *byte == b'\n').next().expect("a line").to_vec();
    for (step, logs) in [(1, 2), (2, 2), (3, 3)] {
        for path in [&log, &head, &new_log, &new_head] {
            let _ = fs::remove_file(path);
        }
        let at = if step == 3 { &log } else { &new_log };
        let written = if step == 1 { &first_line[..10] } else { &first_line[..] };
        fs::write(at, written).expect("writable");
        fs::write(&new_head, if step == 1 { "" } else { "written" }).expect("writable");
        assert_eq!(all_errors(&store), vec![""; logs], "step {step}");
        write_log(&store);
        assert!(!new_log.exists() && !new_head.exists(), "step {step}");
        assert_eq!(all_errors(&store), vec![""; logs + 1], "step {step}");
        let newest = store.list().expect("readable").pop().expect("a log");
        for path in [store.log_path(&newest), store.head_path(&newest)] {
            fs::remove_file(path).expect("it is there");
        }
    }
}

#[test]
fn an_oversized_log_is_not_read() {
    let (_directory, store, _, second) = two_logs();
    let file = fs::OpenOptions::new().write(true).open(store.log_path(&second)).expect("writable");
    file.set_len(1 << 30).expect("it can be sparse");
    assert_eq!(all_errors(&store)[1], "cannot read it: it is larger than 1 MiB");
}

#[test]
fn a_removed_or_renamed_log_is_reported() {
    let (_directory, store, first, second) = two_logs();
    fs::rename(store.log_path(&first), store.directory().join("elsewhere")).expect("it moves");
    assert!(
        all_errors(&store)[0].starts_with("cannot read it: No such file"),
        "{:?}",
        all_errors(&store)
    );
    fs::remove_file(store.head_path(&first)).expect("it is removed");
    assert_eq!(all_errors(&store), [format!("the previous log {} is missing", first.as_str())]);
    fs::copy(store.log_path(&second), store.log_path(&first)).expect("it is copied");
    fs::copy(store.head_path(&second), store.head_path(&first)).expect("it is copied");
    assert!(
        all_errors(&store)[0].contains("its first record belongs to another log"),
        "{:?}",
        all_errors(&store)
    );
}

#[test]
fn each_log_is_linked_by_the_next_even_if_many_start_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    write_log(&store);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| write_log(&store));
        }
    });
    write_log(&store);
    let names = store.list().expect("readable");
    assert_eq!((names.len(), all_errors(&store).concat()), (10, String::new()));
    for name in &names[..9] {
        let kept = [store.log_path(name), store.head_path(name)]
            .map(|path| (fs::read(&path).expect("readable"), path));
        store.remove(name).expect("it is removed");
        assert!(
            all_errors(&store).concat().contains("is missing"),
            "{name:?}: {:?}",
            all_errors(&store)
        );
        for (bytes, path) in &kept {
            fs::write(path, bytes).expect("writable");
        }
    }
}

#[test]
fn a_log_without_a_readable_end_or_from_the_future_is_still_linked() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    crate::private_dir::create(store.directory()).expect("it can be made");
    let ahead = AuditLogName::parse("29991231T000000000Z-00000000").expect("a name");
    for (n, head) in [(0, ""), (1, "garbage")] {
        let name = AuditLogName::parse(&format!("29991231T00000000{n}Z-00000000")).expect("a name");
        fs::write(store.head_path(&name), head).expect("writable");
        let next = write_log(&store);
        assert!(next > ahead, "{next:?}");
        store.remove(&name).expect("it is removed");
        assert!(
            all_errors(&store).concat().contains(&format!("{} is missing", name.as_str())),
            "{:?}",
            all_errors(&store)
        );
        store.remove(&next).expect("it is removed");
    }
}

fn set_mode(store: &AuditStore, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(store.directory(), fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn a_missing_head_is_an_error_and_the_state_after_a_crash_is_not() {
    let (_directory, store, _, second) = two_logs();
    let all = read_lines(&store, &second);
    let head = fs::read(store.head_path(&second)).expect("readable");
    fs::remove_file(store.head_path(&second)).expect("it is removed");
    assert!(all_errors(&store)[1].contains("cannot be read"), "{:?}", all_errors(&store));
    for text in ["", "garbage"] {
        fs::write(store.head_path(&second), text).expect("writable");
        assert!(
            all_errors(&store)[1].contains("has unexpected content"),
            "{:?}",
            all_errors(&store)
        );
    }
    // The machine stopped before any record had to be on disk.
    for (kept, head_lines) in [(1, ""), (2, ""), (2, "0")] {
        fs::write(store.log_path(&second), all[..kept].concat()).expect("writable");
        let text = if head_lines.is_empty() {
            String::new()
        } else {
            format!("{:>20} {}\n", 0, "0".repeat(64))
        };
        fs::write(store.head_path(&second), text).expect("writable");
        assert_eq!(all_errors(&store)[1], "", "{kept} lines and {head_lines:?}");
        fs::remove_file(store.head_path(&second)).expect("it is removed");
        assert_eq!(all_errors(&store)[1], "", "{kept} lines and no head");
    }
    fs::write(store.head_path(&second), "").expect("writable");
    fs::remove_file(store.log_path(&second)).expect("it is removed");
    assert_eq!(all_errors(&store)[1], "", "killed between the two files");
    fs::write(store.head_path(&second), head).expect("writable");
    assert!(
        all_errors(&store)[1].contains("cannot read it"),
        "a head with a line count has no log"
    );
}

#[test]
fn records_after_the_head_are_counted() {
    let (_directory, store, _, second) = two_logs();
    let all = read_lines(&store, &second);
    let forged = HashChain::read(all.concat().as_bytes())
        .end()
        .next_line(RecordKind::Gap { lost: 9 }.to_fields())
        .0;
    fs::write(store.log_path(&second), all.concat() + &forged).expect("writable");
    let logs = inspect_logs(&store).expect("readable").logs;
    assert_eq!((logs[1].synced_records, logs[1].records.len(), logs[1].is_open), (4, 5, false));
}

#[test]
fn a_torn_line_is_not_an_error() {
    let (_directory, store, _, second) = two_logs();
    fs::write(store.log_path(&second), read_lines(&store, &second).concat() + "{\"n\":5,\"prev\"")
        .expect("writable");
    let logs = inspect_logs(&store).expect("readable").logs;
    assert!(logs[1].is_intact() && logs[1].torn_bytes == 13, "{:?}", logs[1]);
}

#[test]
fn fifos_do_not_block_and_links_are_not_followed() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let (_directory, store, first, second) = two_logs();
    fs::rename(store.log_path(&first), store.directory().join("elsewhere")).expect("it moves");
    std::os::unix::fs::symlink("elsewhere", store.log_path(&first)).expect("a link");
    fs::remove_file(store.head_path(&second)).expect("it is removed");
    mknodat(CWD, store.head_path(&second), FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
    let found = all_errors(&store);
    assert!(
        found[0].starts_with("cannot read it")
            && found[1].contains("cannot be read: it is not a file"),
        "{found:?}"
    );
    write_log(&store);
}

#[test]
fn a_directory_that_is_open_to_others_is_reported() {
    let (_directory, store, ..) = two_logs();
    set_mode(&store, 0o755);
    let problem = inspect_logs(&store).expect("readable").directory_error.expect("a problem");
    assert!(problem.to_string().contains("is accessible to other users"), "{problem}");
}
