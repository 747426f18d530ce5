//! Two contents, compared for a person: text as a unified diff, anything else by its size.

use std::time::Duration;

use similar::TextDiff;

/// Of each side. Nobody reads a diff of more.
pub(super) const MOST_COMPARED: u64 = 1 << 20;
/// A diff that takes longer is made of larger pieces.
const PATIENCE: Duration = Duration::from_millis(300);
const CONTEXT: usize = 3;

/// What `git diff` would show; `None` if one of the two is no text.
pub(super) fn diff(old: Option<(&str, &[u8])>, new: Option<(&str, &[u8])>) -> Option<String> {
    let (old_text, new_text) = (text(old.map_or(&[], |(_, bytes)| bytes))?, text(new.map_or(&[], |(_, bytes)| bytes))?);
    let name = |side: Option<(&str, &[u8])>, letter: char| side.map_or("/dev/null".to_owned(), |(path, _)| format!("{letter}/{path}"));
    let (old_name, new_name) = (name(old, 'a'), name(new, 'b'));
    let compared = TextDiff::configure().timeout(PATIENCE).diff_lines(old_text, new_text);
    let text = compared.unified_diff().context_radius(CONTEXT).header(&old_name, &new_name).to_string();
    // An empty file and a file that only moved have no lines to show.
    Some(if text.is_empty() { format!("--- {old_name}\n+++ {new_name}\n") } else { text })
}

fn text(bytes: &[u8]) -> Option<&str> {
    if bytes.contains(&0) { None } else { std::str::from_utf8(bytes).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_compared_by_lines_and_anything_else_is_not() {
        let shown = diff(Some(("f", b"a\nb\nc\n")), Some(("f", b"a\nB\nc"))).expect("both are text");
        insta::assert_snapshot!(shown, @r"
        --- a/f
        +++ b/f
        @@ -1,3 +1,3 @@
         a
        -b
        -c
        +B
        +c
        \ No newline at end of file
        ");
        assert_eq!(diff(None, Some(("f", b""))).as_deref(), Some("--- /dev/null\n+++ b/f\n"));
        assert_eq!(diff(Some(("f", b"a")), Some(("f", b"\0"))), None);
        assert_eq!(diff(Some(("f", b"\xff")), None), None);
    }
}
