//! Hostile options, foreign roots, what a walk leaves out.

use std::os::unix::fs::symlink;
use std::time::Duration;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{TestGuest, TestHost, TestHostBuilder};

use crate::{assert_contains, create_fifo};

struct WalkOptions {
    globs: usize,
    glob: &'static str,
    required: usize,
    bytes: usize,
}

fn walk_host(options: &WalkOptions) -> TestHost {
    let guest = TestGuest::from_file("walk")
        .with_replacement("{{globs}}", &options.globs.to_string())
        .with_replacement("{{glob}}", options.glob)
        .with_replacement("{{required}}", &options.required.to_string())
        .with_replacement("{{bytes}}", &options.bytes.to_string());
    TestHost::with_guest(&guest.with_requested(&[Capability::ReadFiles]))
}

const DEFAULT_OPTIONS: WalkOptions = WalkOptions { globs: 0, glob: "*", required: 0, bytes: 1 };

#[test]
fn options_beyond_the_contract_are_refused() {
    let table = [
        (
            WalkOptions { globs: 300, ..DEFAULT_OPTIONS },
            "refused 1: 300 globs were given; the \
            limit is 256",
        ),
        (WalkOptions { globs: 1, glob: "[", ..DEFAULT_OPTIONS }, "refused 1: `[`"),
        (
            WalkOptions { required: 65, ..DEFAULT_OPTIONS },
            "the limit is 64 strings with 4096 bytes in total",
        ),
        (
            WalkOptions { required: 1, bytes: 5000, ..DEFAULT_OPTIONS },
            "the limit is 64 strings with 4096 bytes in total",
        ),
    ];
    for (options, says) in table {
        let test_host = walk_host(&options);
        assert_contains(&test_host.call_ok("walk", r#"{"root":""}"#), says);
        test_host.assert_healthy();
    }
}

#[test]
fn globs_that_are_costly_end_with_the_call() {
    let glob = "{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}\
        {a,b,c,d,e,f,g,h}**/**/**/**/*a*b*c*d*e*f*";
    let test_host = walk_host(&WalkOptions { globs: 256, glob, ..DEFAULT_OPTIONS });
    test_host.write_file(&"abcdefgh".repeat(20), "");
    let report = test_host.run_turn(&[("walk", r#"{"root":""}"#)]);
    assert!(report.duration < Duration::from_secs(12), "{:?}", report.duration);
    test_host.assert_healthy();
}

#[test]
fn r123_a_walk_stays_in_the_workspace() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret"), "secret").expect("it can be written");
    let test_host = walk_host(&DEFAULT_OPTIONS);
    test_host.write_file("inside/file", "content");
    symlink(outside.path(), test_host.workspace_dir().join("out")).expect("a link");
    symlink(outside.path().join("secret"), test_host.workspace_dir().join("file-out"))
        .expect("a link");
    symlink("..", test_host.workspace_dir().join("inside/up")).expect("a link");
    let absolute = outside.path().display().to_string();
    for root in
        ["..", "../..", "/", "/etc", &absolute, "out", "out/secret", "file-out", "inside/../.."]
    {
        let text = test_host.call_ok("walk", &format!(r#"{{"root":"{root}"}}"#));
        assert!(text.starts_with("denied ") || text.starts_with("refused "), "{root}: {text}");
        assert!(!text.contains("secret\n"), "{root}: {text}");
    }
    // 0 is a file, 1 a directory, 2 a link.
    let text = test_host.call_ok("walk", r#"{"root":""}"#);
    assert_eq!(text, "2 file-out\n1 inside\n0 inside/file\n2 inside/up\n2 out\n");
    assert_contains(
        &test_host.call_ok("walk", r#"{"root":"none"}"#),
        "refused 0: `none` does not \
        exist",
    );
    test_host.assert_healthy();
}

#[test]
fn a_walk_passes_over_git_links_and_what_is_no_file() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret"), "secret content").expect("it can be written");
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("walk-files").with_requested(&[Capability::ReadFiles]),
    );
    test_host.write_file(".git/config", "url with a token");
    test_host.write_file("sub/.git/hooks/pre-commit", "a hook");
    test_host.write_file(".hidden", "hidden content");
    test_host.write_file("file", "plain content");
    symlink(outside.path().join("secret"), test_host.workspace_dir().join("link")).expect("a link");
    symlink(outside.path(), test_host.workspace_dir().join("links")).expect("a link");
    create_fifo(&test_host.workspace_dir().join("fifo"));
    let text = test_host.call_ok("walk_files", r#"{"root":""}"#);
    assert_eq!(text, "file .hidden\nfile file\nhidden contentplain content");
    for root in ["fifo", "link", ".git", "sub/.git"] {
        let text = test_host.call_ok("walk_files", &format!(r#"{{"root":"{root}"}}"#));
        assert!(
            !text.contains("secret content") && !text.contains("token") && !text.contains("a hook"),
            "{root}: {text}"
        );
    }
    test_host.assert_healthy();
}

#[test]
fn r098_walks_are_counted() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("many-walks").with_requested(&[Capability::ReadFiles]),
    );
    let text = test_host.call_ok("many_walks", "{}");
    assert_contains(&text, "16 open, then refused 2: the limit of 16 open walks is reached");
    assert_contains(&text, "after a drop ok\n");
    assert_contains(&text, "refused 4: this walk returns entries, not files");
    test_host.assert_healthy();
}

#[test]
fn r101_a_walk_ends_when_it_is_cancelled_or_out_of_time() {
    let guest = TestGuest::from_file("walk-for-ever").with_requested(&[Capability::ReadFiles]);
    let test_host = TestHostBuilder::default().with_guest(&guest).with_timeout_millis(400).build();
    for n in 0..300 {
        test_host.write_file(&format!("d{}/f{n}", n % 10), "content");
    }
    assert_contains(
        &test_host.call_error("walk_for_ever", "{}"),
        "the call exceeded its time limit of 0.4 seconds",
    );
    let report =
        test_host.run_turn_cancelled(&[("walk_for_ever", "{}")], Some(Duration::from_millis(150)));
    assert!(report.after_cancel.expect("it was cancelled") < Duration::from_secs(1));
    test_host.assert_healthy();
}

#[test]
fn a_walk_stays_at_its_end() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("walk-end").with_requested(&[Capability::ReadFiles]),
    );
    test_host.write_file("a", "");
    test_host.write_file("b", "");
    assert_eq!(test_host.call_ok("walk_end", "{}"), "2 0 0 0 ");
    test_host.assert_healthy();
}

#[test]
fn r105_a_handle_of_a_walk_that_a_guest_does_not_have_is_an_error() {
    // A dropped walk, and a handle that never was one.
    for beyond in ["0", "7", "3999999999"] {
        let guest = TestGuest::from_file("forged-walk")
            .with_requested(&[Capability::ReadFiles])
            .with_replacement("{{beyond}}", beyond);
        let test_host = TestHost::with_guest(&guest);
        let text = test_host.call_error("forged_walk", "{}");
        assert_contains(&text, "the tool crashed: ");
        assert_contains(&text, "handle");
        test_host.assert_healthy();
    }
}

#[test]
fn sizes_beyond_4_gib_are_exact() {
    let guest = TestGuest::from_file("entry-sizes").with_requested(&[Capability::ReadFiles]);
    let test_host = TestHost::with_guest(&guest);
    test_host.write_file("small", "");
    let sparse = std::fs::File::create(test_host.workspace_dir().join("large")).expect("a file");
    sparse.set_len((5 << 30) + 1).expect("a sparse file");
    std::fs::create_dir(test_host.workspace_dir().join("sub")).expect("a directory");
    assert_eq!(test_host.call_ok("entry_sizes", "{}"), "large 5120 1\nsmall 0 1\nsub 0 1\n");
    test_host.assert_healthy();
}
