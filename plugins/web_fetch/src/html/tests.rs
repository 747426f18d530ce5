//! Pages and what is left of them.

use super::*;

fn text(html: &str) -> String {
    to_text(html, &Url::parse("https://example.com/docs/page").expect("an address")).1
}

#[test]
fn r122_html_becomes_text() {
    let table = [
        ("<p>One\n  two</p><p>three", "One two\n\nthree"),
        ("a<br>b<br><br>c", "a\nb\n\nc"),
        ("<h1>A</h1><h3> B </h3>c<h2></h2>", "# A\n\n### B\n\nc"),
        ("<ul><li>a<li><p>b</p><ul><li>c</ul><li></ul>d", "- a\n\n- b\n\n  - c\n\nd"),
        ("<ol start=3><li>a</li><li>b</li></ol>", "3. a\n4. b"),
        ("x <code>a &lt; b</code> y", "x `a < b` y"),
        ("<pre>\n  a\n  b\n</pre>c", "```\n  a\n  b\n```\n\nc"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n1 | 2"),
        ("<blockquote>a<p>b</blockquote>c", "> a\n\n> b\n\nc"),
        ("a <img alt=' a cat ' src=x><img src=y>", "a [image: a cat]"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("fish&nbsp;&amp; chips &#x1F41F; &notanentity;", "fish & chips \u{1f41f} \u{ac}anentity;"),
        ("", ""),
    ];
    for (html, expected) in table {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn links_can_be_followed() {
    let table = [
        ("<a href=other?a&amp;b>see</a>", "[see](https://example.com/docs/other?a&b)"),
        ("<a href='//x.example'>x</a>", "[x](https://x.example/)"),
        ("<a href=#top>top</a> <a name=x>y</a> <a href=javascript:x()>z</a>", "top y z"),
        ("a <a href=/><img src=x></a> b", "a b"),
    ];
    for (html, expected) in table {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn what_is_no_text_of_the_page_is_left_out() {
    let page = "<title> A \n page </title><style>p{}</style><script>if (a</b>) \
        '<p>'</script><nav><ul><li>menu</ul></nav>\
        <svg><title>no</title><svg></svg><text>no</text></svg><template><p>no</template><!-- no \
        --><noscript>no</noscript>yes";
    let (title, text) = to_text(page, &Url::parse("https://example.com").expect("an address"));
    assert_eq!((title.as_deref(), text.as_str()), (Some("A page"), "yes"));
}

#[test]
fn a_menu_without_an_end_takes_nothing_with_it() {
    assert_eq!(text("<nav><a>menu</a><p>the page"), "menu\n\nthe page");
}

#[test]
fn a_page_can_be_anything_at_all() {
    let deep = "<ul><li><blockquote><a href=x>".repeat(50_000);
    assert!(text(&deep).len() < 20_000_000);
    for page in [
        "</p></ul></a></pre></blockquote>",
        "<",
        "<a href",
        "<pre>",
        "<pre><pre>a</pre>b</pre>",
        "&#xFFFFFFFF;",
        "\0<\0>",
    ] {
        drop(text(page));
    }
    // Each of these links is a hundred times as long as what it is made of.
    let path = format!("https://example.com/{}/", "x".repeat(8000));
    let links = "<a href=y>z</a>".repeat(10_000);
    let (_, text) = to_text(&links, &Url::parse(&path).expect("an address"));
    assert!(text.len() < MOST_TEXT + 20_000 && text.ends_with("[the rest of the page is omitted]"));
}
