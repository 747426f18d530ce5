//! The bounds of what is written aside and of what is kept.

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{TestGuest, TestHost};

use crate::assert_contains;
use crate::overlay::edit_host;

#[test]
fn r098_what_is_replaced_is_kept_and_so_it_is_bounded() {
    let test_host = edit_host(r#"(call $delete @"huge")"#);
    std::fs::File::create(test_host.workspace_dir().join("huge"))
        .expect("made")
        .set_len(300 << 20)
        .expect("it is sparse");
    assert_contains(
        &test_host.call_error("edit", "{}"),
        "would overwrite or delete more than 256 \
        MiB",
    );
    assert!(test_host.workspace_dir().join("huge").exists());
}

#[test]
fn r098_what_a_call_may_write_aside_is_bounded() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("many-creates").with_requested(&[Capability::WriteFiles]),
    );
    let text = test_host.call_ok("many_creates", "{}");
    assert_contains(&text, "1000 created, then error ");
    assert_contains(&text, "denied (too-much)");
    let test_host = edit_host(
        r#"(call $create @"sparse" @"x") (call $resize @"sparse" (i64.const 1099511627776))
            (call $write-at @"sparse" @"x" (i64.const 1099511627776))"#,
    );
    assert_contains(
        &test_host.call_ok("edit", "{}"),
        "create ok\nresize error 8\nwrite-at error 8",
    );
    assert_eq!(
        std::fs::metadata(test_host.workspace_dir().join("sparse")).expect("it is there").len(),
        1
    );
    test_host.assert_healthy();
}

#[test]
fn r098_no_file_becomes_larger_than_one_may_be_whatever_way_it_is_written() {
    let test_host = edit_host(
        r#"(call $create @"f" @"x") (call $resize @"f" (i64.const 67108863))
            (call $append @"f" @"1") (call $append @"f" @"2")"#,
    );
    assert_contains(
        &test_host.call_ok("edit", "{}"),
        "create ok\nresize ok\nappend ok\nappend error",
    );
    assert_eq!(
        std::fs::metadata(test_host.workspace_dir().join("f")).expect("it is there").len(),
        64 << 20
    );
}
