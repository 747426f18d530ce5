//! Recognises web pages, which proxies and captive portals send in place of an API error.

/// Returns the text of a web page without its markup, or `None` if the text is not a page.
///
/// The result has one line and may contain control characters. The caller escapes them for a
/// terminal.
pub(super) fn page_text(body: &str) -> Option<String> {
    is_web_page(body).then(|| {
        let title = tag_content(body, "title").map(strip_markup).unwrap_or_default();
        let text = strip_markup(body);
        // Most pages repeat their title in the text.
        let rest = text.strip_prefix(&title).unwrap_or(&text).trim_start();
        if rest.starts_with(&title) || title.is_empty() {
            rest.to_owned()
        } else {
            format!("{title} {rest}").trim_end().to_owned()
        }
    })
}

/// Returns whether a text starts like a web page.
pub(super) fn is_web_page(text: &str) -> bool {
    let start = text.trim_start_matches('\u{FEFF}').trim_start();
    ["<!doctype", "<html", "<head", "<body"].iter().any(|tag| starts_with_ignore_case(start, tag))
}

fn starts_with_ignore_case(text: &str, tag: &str) -> bool {
    text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

/// Returns the content of the first element with this name.
fn tag_content<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let start =
        page.match_indices('<').find(|(at, _)| starts_with_ignore_case(&page[at + 1..], name))?.0;
    let inside = &page[start..][page[start..].find('>')? + 1..];
    Some(&inside[..inside.find('<').unwrap_or(inside.len())])
}

/// Removes tags, comments, styles and scripts, and collapses white space.
fn strip_markup(page: &str) -> String {
    let mut words = String::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        words.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_tag = rest[1..]
            .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        let length = match rest {
            _ if !is_tag => {
                words.push('<');
                Some(1)
            }
            comment if comment.starts_with("<!--") => comment.find("-->").map(|at| at + 3),
            hidden if starts_with_ignore_case(hidden, "<style") => end_of_tag(hidden, "</style"),
            hidden if starts_with_ignore_case(hidden, "<script") => end_of_tag(hidden, "</script"),
            tag => tag.find('>').map(|at| at + 1),
        };
        if is_tag {
            words.push(' ');
        }
        rest = length.map_or("", |length| &rest[length..]);
    }
    words.push_str(rest);
    // `&amp;` comes last, so that its result is not decoded a second time.
    let entities = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let words = entities.iter().fold(words, |words, (entity, meant)| words.replace(entity, meant));
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the position after this closing tag.
fn end_of_tag(text: &str, tag: &str) -> Option<usize> {
    let at = text.match_indices("</").find(|(at, _)| starts_with_ignore_case(&text[*at..], tag))?.0;
    Some(at + text[at..].find('>')? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_reduced_to_its_text() {
        let nginx = "<html>\r\n<head><title>502 Bad \
            Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n\
            <hr><center>nginx/1.29</center>\r\n</body>\r\n</html>";
        let busy = "\n <!DOCTYPE html><HTML lang=en><!-- 1 > 0 --><STYLE>p { color: red \
            }</STYLE><script>if (1 < 2) { alert() }</script>\
            <title>Wait</title><p>Too &lt;many&gt; requests &amp; users, 1 < \
            2&nbsp;<br/>Ray&nbsp;ID: 7</p>";
        let table = [
            (nginx, Some("502 Bad Gateway nginx/1.29")),
            (busy, Some("Wait Too <many> requests & users, 1 < 2 Ray ID: 7")),
            ("<html><script>never closed", Some("")),
            ("<!doctype html><p", Some("")),
            ("<p>a tag</p> in a message", None),
            ("plain words", None),
            ("", None),
        ];
        for (body, expected) in table {
            assert_eq!(page_text(body).as_deref(), expected, "{body}");
        }
    }
}
