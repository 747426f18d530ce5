//! Hostile options, foreign roots, what a walk leaves out.

use std::os::unix::fs::symlink;
use std::time::Duration;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{Guest, House, Plan};

use crate::{assert_says, make_fifo};

struct Options {
    globs: usize,
    glob: &'static str,
    required: usize,
    bytes: usize,
}

fn walk(options: &Options) -> House {
    let guest = Guest::named("walk")
        .with("{{globs}}", &options.globs.to_string())
        .with("{{glob}}", options.glob)
        .with("{{required}}", &options.required.to_string())
        .with("{{bytes}}", &options.bytes.to_string());
    House::with(&guest.asking(&[Capability::ReadFiles]))
}

const PLAIN: Options = Options { globs: 0, glob: "*", required: 0, bytes: 1 };

#[test]
fn options_beyond_the_contract_are_refused() {
    let table = [
        (Options { globs: 300, ..PLAIN }, "refused 1: 300 globs; at most 256"),
        (Options { globs: 1, glob: "[", ..PLAIN }, "refused 1: '['"),
        (Options { required: 65, ..PLAIN }, "'required' takes 64 strings of 4096 bytes in all"),
        (Options { required: 1, bytes: 5000, ..PLAIN }, "'required' takes 64 strings of 4096 bytes in all"),
    ];
    for (options, says) in table {
        let house = walk(&options);
        assert_says(&house.answers("walk", r#"{"root":""}"#), says);
        house.assert_is_fine();
    }
}

#[test]
fn globs_that_are_costly_end_with_the_call() {
    let glob = "{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}**/**/**/**/*a*b*c*d*e*f*";
    let house = walk(&Options { globs: 256, glob, ..PLAIN });
    house.write(&"abcdefgh".repeat(20), "");
    let report = house.turn(&[("walk", r#"{"root":""}"#)]);
    assert!(report.took < Duration::from_secs(12), "{:?}", report.took);
    house.assert_is_fine();
}

#[test]
fn r123_a_walk_stays_in_the_workspace() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret"), "secret").expect("it can be written");
    let house = walk(&PLAIN);
    house.write("inside/file", "content");
    symlink(outside.path(), house.folder().join("out")).expect("a link");
    symlink(outside.path().join("secret"), house.folder().join("file-out")).expect("a link");
    symlink("..", house.folder().join("inside/up")).expect("a link");
    let absolute = outside.path().display().to_string();
    for root in ["..", "../..", "/", "/etc", &absolute, "out", "out/secret", "file-out", "inside/../.."] {
        let text = house.answers("walk", &format!(r#"{{"root":"{root}"}}"#));
        assert!(text.starts_with("denied ") || text.starts_with("refused "), "{root}: {text}");
        assert!(!text.contains("secret\n"), "{root}: {text}");
    }
    // 0 is a file, 1 a directory, 2 a link.
    let text = house.answers("walk", r#"{"root":""}"#);
    assert_eq!(text, "2 file-out\n1 inside\n0 inside/file\n2 inside/up\n2 out\n");
    assert_says(&house.answers("walk", r#"{"root":"none"}"#), "refused 0: none");
    house.assert_is_fine();
}

#[test]
fn a_walk_passes_over_git_links_and_what_is_no_file() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret"), "secret content").expect("it can be written");
    let house = House::with(&Guest::named("walk-files").asking(&[Capability::ReadFiles]));
    house.write(".git/config", "url with a token");
    house.write("sub/.git/hooks/pre-commit", "a hook");
    house.write(".hidden", "hidden content");
    house.write("file", "plain content");
    symlink(outside.path().join("secret"), house.folder().join("link")).expect("a link");
    symlink(outside.path(), house.folder().join("links")).expect("a link");
    make_fifo(&house.folder().join("fifo"));
    let text = house.answers("walk_files", r#"{"root":""}"#);
    assert_eq!(text, "file .hidden\nfile file\nhidden contentplain content");
    for root in ["fifo", "link", ".git", "sub/.git"] {
        let text = house.answers("walk_files", &format!(r#"{{"root":"{root}"}}"#));
        assert!(!text.contains("secret content") && !text.contains("token") && !text.contains("a hook"), "{root}: {text}");
    }
    house.assert_is_fine();
}

#[test]
fn r098_walks_are_counted() {
    let house = House::with(&Guest::named("many-walks").asking(&[Capability::ReadFiles]));
    let text = house.answers("many_walks", "{}");
    assert_says(&text, "16 open, then refused 3: 16 walks are open already");
    assert_says(&text, "refused 3: there is no open walk 4000000000");
    assert_says(&text, "refused 3: this walk hands out entries, not files");
    house.assert_is_fine();
}

#[test]
fn r101_a_walk_ends_when_it_is_cancelled_or_out_of_time() {
    let guest = Guest::named("walk-for-ever").asking(&[Capability::ReadFiles]);
    let house = Plan::default().guest(&guest).millis(400).build();
    for n in 0..300 {
        house.write(&format!("d{}/f{n}", n % 10), "content");
    }
    assert_says(&house.fails("walk_for_ever", "{}"), "it ran longer than its 0.4 seconds");
    let report = house.turn_cancelled(&[("walk_for_ever", "{}")], Some(Duration::from_millis(150)));
    assert!(report.after_cancel.expect("it was cancelled") < Duration::from_secs(1));
    house.assert_is_fine();
}
