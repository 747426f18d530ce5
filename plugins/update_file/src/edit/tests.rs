//! What a change does to a text, as examples and as laws.

use proptest::prelude::*;

use super::*;

fn edit(text: &str, old: &str, new: &str) -> Result<Edit, String> {
    change(text, old, new, false)
}

fn change(text: &str, old: &str, new: &str, all: bool) -> Result<Edit, String> {
    apply(text, &Change { path: "f", old, new, all }).map_err(|error| match error {
        ToolError::InvalidInput(problem) => format!("{}: {}", problem.pointer, problem.message),
        other => format!("{other:?}"),
    })
}

fn text(text: &str, old: &str, new: &str) -> String {
    match edit(text, old, new) {
        Ok(edit) => edit.text,
        Err(error) => panic!("{error}"),
    }
}

fn refusal(text: &str, old: &str, new: &str) -> String {
    match edit(text, old, new) {
        Ok(edit) => panic!("{edit:?}"),
        Err(error) => error,
    }
}

#[test]
fn r118_a_unique_exact_match_is_replaced() {
    assert_eq!(
        edit("a\nb\nc\n", "b", "x\ny"),
        Ok(Edit { text: "a\nx\ny\nc\n".into(), lines: vec![2], loosely: false })
    );
    // Though another place would fit if indentation did not count.
    assert_eq!(text("  a\n\ta\n", "\ta", "\tb"), "  a\n\tb\n");
}

#[test]
fn r118_ambiguity_is_an_error_with_the_count() {
    let error = refusal("a\nb\na\n", "a", "x");
    assert!(
        error.contains("2 times, at lines 1 and 3") && error.contains("replace_all"),
        "{error}"
    );
    assert!(refusal("aaa", "aa", "x").contains("matches overlap"));
    let error = refusal("  a()\n\ta()\n", "   a()", "b()");
    assert!(
        error.contains("2 passages differ from it only in leading")
            && error.contains("lines 1 and 2"),
        "{error}"
    );
}

#[test]
fn r118_every_occurrence_is_replaced_on_demand() {
    assert_eq!(
        change("a b\na", "a", "x", true),
        Ok(Edit { text: "x b\nx".into(), lines: vec![1, 2], loosely: false })
    );
    assert_eq!(change("aaa", "aa", "x", true).map(|edit| edit.text).as_deref(), Ok("xa"));
}

#[test]
fn r118_indentation_is_shifted_when_the_place_is_unique() {
    let before = "class A:\n    def f(self):\n        return 1\n";
    let after = "class A:\n    def f(self):\n        x = 2\n\n        return x\n";
    let expected = Edit { text: after.into(), lines: vec![2], loosely: true };
    assert_eq!(
        edit(before, "def f(self):\n    return 1\n", "def f(self):\n    x = 2\n\n    return x\n"),
        Ok(expected)
    );
    assert_eq!(
        text(
            "\tif a {\n\t\tb\n\t}\n",
            "    if a {\n        b\n    }",
            "    if a {\n        c\n    }"
        ),
        "\tif a {\n\t\tc\n\t}\n"
    );
}

#[test]
fn r118_spaces_at_the_ends_of_lines_do_not_count() {
    assert_eq!(text("a  \nb\n", "a\nb\n", "c\n"), "c\n");
    assert_eq!(text("a\nb", "a \nb\n", "c\n"), "c");
    assert_eq!(text("a\nb\nc\n", "a \nb\n", ""), "c\n");
}

#[test]
fn r118_another_number_of_lines_is_no_match() {
    assert!(refusal("a\n\nb\n", "a \nb", "c").contains("is not in `f`"));
    assert!(refusal("a\n\n\nb\n", " \n ", "c").contains("is not in `f`"));
}

#[test]
fn r118_an_indentation_that_cannot_be_known_is_not_guessed() {
    let error = refusal("if a:\n  b\n c\n", "if a:\nb\nc", "if a:\nb");
    assert!(error.contains("Lines 1 to 3 differ from it only in their indentation"), "{error}");
}

#[test]
fn r118_line_endings_are_kept() {
    assert_eq!(text("a\r\nb\r\n", "a\nb", "c\nd\ne"), "c\r\nd\r\ne\r\n");
    assert_eq!(text("a\r\nb\r\n", "b", "c\nd"), "a\r\nc\r\nd\r\n");
    assert_eq!(text("a\r\nb", "b", "c\nd"), "a\r\nc\r\nd");
    assert_eq!(text("a\r\n  b\r\n", "a \nb", "c\nd"), "c\r\n  d\r\n");
    assert_eq!(text("a\nb\r\nc\n", "b", "x\ny"), "a\nx\r\ny\r\nc\n");
    assert_eq!(text("a\nb\n", "a\r\nb", "c\r\nd"), "c\nd\n");
}

#[test]
fn r118_the_final_newline_is_kept() {
    assert_eq!(text("a\nb\n", "b\n", "c"), "a\nc\n");
    assert_eq!(text("a\r\nb\r\n", "b\n", "c"), "a\r\nc\r\n");
    assert_eq!(text("a\nb", "b", "c"), "a\nc");
    assert_eq!(text("a\nb", "b\n", "c\n"), "a\nc");
    assert_eq!(text("a\nb\n", "b\n", ""), "a\n");
    assert_eq!(text("a\n", "a\n", ""), "");
}

#[test]
fn r118_empty_and_identical_texts_are_refused() {
    assert!(refusal("a", "", "b").starts_with("/old_text"));
    assert!(refusal("a", "a", "a").starts_with("/new_text"));
    assert!(refusal("a\r\nb", "a\nb", "a\r\nb").starts_with("/new_text"));
    assert!(refusal("a\n", "a\n", "a").starts_with("/new_text"));
}

#[test]
fn an_empty_file_can_be_filled_and_no_other() {
    let filled = edit("", "", "a\nb\n").map(|edit| (edit.text, edit.lines, edit.loosely));
    assert_eq!(filled, Ok(("a\nb\n".to_owned(), vec![1], false)));
    assert_eq!(text("\u{FEFF}", "", "a"), "\u{FEFF}a");
    assert!(refusal("", "", "").starts_with("/new_text"));
    assert!(refusal("\n", "", "a").contains("the file is not"));
    assert!(
        edit("", "", &"x".repeat(source::MAX_BYTES + 1))
            .is_err_and(|problem| problem.contains("10 MB"))
    );
}

#[test]
fn a_byte_order_mark_stays_where_it_is() {
    assert_eq!(text("\u{FEFF}a\nb", "a\n", "x\n"), "\u{FEFF}x\nb");
    assert_eq!(text("\u{FEFF}  a\nb", "\ta\nb", "x\ny"), "\u{FEFF}x\ny");
}

#[test]
fn a_text_that_would_grow_too_large_is_refused_before_it_does() {
    let error = change(&"a".repeat(5_000_000), "a", &"b".repeat(1_000_000), true);
    assert!(error.is_err_and(|error| error.contains("10 MB")));
}

/// Texts of few letters and much whitespace, in which things repeat.
fn texts() -> impl Strategy<Value = String> {
    "[ab \t\n]{0,40}"
}

proptest! {
    #[test]
    fn an_exact_change_is_what_replacen_does(
        before in texts(),
        old in "[ab \n]{1,4}",
        new in "[abc \n]{0,6}",
    ) {
        prop_assume!(old != new);
        let count = before.matches(&old).count();
        let expected = |count| {
            let mut after = before.replacen(&old, &new, count);
            keep_final_newline(&before, &mut after);
            after
        };
        match change(&before, &old, &new, false) {
            Ok(edit) if !edit.loosely => {
                prop_assert_eq!(count, 1);
                prop_assert_eq!(edit.text, expected(1));
            }
            Ok(_) => prop_assert_eq!(count, 0),
            Err(_) => {}
        }
        if count > 0 && let Ok(edit) = change(&before, &old, &new, true) {
            prop_assert_eq!(edit.lines.len(), count);
            prop_assert_eq!(edit.text, expected(count));
        }
    }

    #[test]
    fn a_file_of_one_kind_of_line_endings_stays_one(
        before in texts(),
        old in "[ab \n]{1,6}",
        new in "[abc \n]{0,6}",
        all: bool,
    ) {
        let crlf = endings::to_crlf(&before).into_owned();
        let (with_lf, with_crlf) =
            (change(&before, &old, &new, all), change(&crlf, &old, &new, all));
        prop_assert_eq!(with_lf.is_ok(), with_crlf.is_ok());
        if let (Ok(with_lf), Ok(with_crlf)) = (with_lf, with_crlf) {
            // A file without any line break says nothing about them.
            if crlf.contains('\n') {
                prop_assert_eq!(endings::to_crlf(&with_lf.text), with_crlf.text);
            }
        }
    }

    #[test]
    fn nothing_outside_of_the_match_changes(
        head in "([xy \t]{0,5}\n){0,4}",
        old in "([ \t]{0,3}[ab]{1,3}\n){1,3}",
        tail in "([xy \t]{0,5}\n){0,4}",
        indent in "( {1,4}|\t)?",
        new in "([ \t]{0,3}[cd]{1,3}\n){1,3}",
    ) {
        let body: String = old.lines().map(|line| format!("{indent}{line}\n")).collect();
        let before = format!("{head}{body}{tail}");
        let edited = edit(&before, &old, &new);
        if let Ok(edit) = edited {
            prop_assert!(edit.text.starts_with(&head));
            prop_assert!(edit.text.ends_with(&tail));
            let middle = &edit.text[head.len()..edit.text.len() - tail.len()];
            let trimmed = |text: &str| {
                text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
            };
            prop_assert_eq!(trimmed(middle), trimmed(&new));
        }
    }

    #[test]
    fn a_uniform_shift_is_undone(
        head in "([xy]{0,3}\n){0,3}",
        old in "([ \t]{0,3}[ab]{1,3}\n){2,3}",
        indent in "( {1,4}|\t)",
        new in "([ \t]{0,3}[cd]{1,3}\n){1,3}",
    ) {
        let deeper = |text: &str| {
            text.lines().map(|line| format!("{indent}{line}\n")).collect::<String>()
        };
        let before = format!("{head}{}", deeper(&old));
        if let Ok(edit) = edit(&before, &old, &new)
            && edit.loosely
        {
            prop_assert_eq!(edit.text, format!("{head}{}", deeper(&new)));
        }
    }

    #[test]
    fn no_text_makes_it_panic(
        before in "\\PC{0,30}",
        old in "[\\PC\r\n]{0,6}",
        new in "[\\PC\r\n]{0,6}",
        all: bool,
    ) {
        let _ = change(&before, &old, &new, all);
    }
}
