//! The man pages that `cofferdam man` writes.

use std::collections::BTreeSet;
use std::fs;

use cofferdam_tests::program::TestHome;

use super::PROGRAM;

#[test]
fn each_command_has_a_man_page() {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    let ran = home.run(&["man", "pages/man1"]);
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    let directory = home.workspace().join("pages/man1");
    let read = |name: &str| fs::read_to_string(directory.join(name)).expect("a page is written");
    let names: BTreeSet<String> = fs::read_dir(&directory)
        .expect("the directory is created")
        .map(|entry| entry.expect("an entry").file_name().display().to_string())
        .collect();
    // Each heading of the command reference is a command.
    let headings: BTreeSet<String> = cofferdam_cli::cli_reference()
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(" `")?.strip_suffix('`'))
        .map(|name| format!("{}.1", name.replace(' ', "-")))
        .collect();
    assert_eq!(names, headings);
    assert_eq!(ran.stdout, format!("wrote {} man pages to pages/man1\n", names.len()));
    for name in &names {
        let page = read(name);
        assert_eq!(page.matches("\n.TH ").count(), 1, "{page}");
        assert!(!page.contains("\n.SH EXTRA"), "{page}");
    }
    let sections = |page: &str| -> Vec<String> {
        page.lines().filter_map(|line| line.strip_prefix(".SH ")).map(str::to_owned).collect()
    };
    let main_page = home.run(&["man"]).stdout;
    assert_eq!(main_page, read("cofferdam.1"));
    insta::assert_snapshot!(
        sections(&main_page).join(", "),
        @r#"NAME, SYNOPSIS, DESCRIPTION, OPTIONS, "CHAT OPTIONS", SUBCOMMANDS, NOTES, EXAMPLES"#
    );
    // A short page, without its options.
    let page = read("cofferdam-demo.1").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let (head, rest) = page.split_once(".SH SYNOPSIS").expect("a synopsis");
    let (_, tail) = rest.split_once(".SH NOTES").expect("notes");
    insta::assert_snapshot!(format!("{head}…\n.SH NOTES{tail}"), @r#"
    .ie \n(.g .ds Aq \(aq
    .el .ds Aq '
    .TH cofferdam-demo 1 "" "cofferdam VERSION" "User Commands"
    .SH NAME
    cofferdam\-demo \- Play a recorded conversation on a sample project, with live sandboxed tools
    …
    .SH NOTES
    .PP
    The demo needs no key and no network, and changes only its own sample project.
    .SH EXAMPLES
    .nf
    cofferdam demo
    cofferdam demo \-\-fast
    cofferdam demo \-\-keep       keeps the sample project
    .fi
    "#);
}

#[test]
fn an_error_of_the_man_command_names_the_path() {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR")).with_file("file", "");
    let ran = home.run(&["man", "file"]);
    assert_eq!(ran.exit_code, 1, "{ran:?}");
    assert!(ran.stderr.contains("cannot write file: "), "{ran:?}");
}
