//! HTML as text that can be read: headings, lists, links and code as in Markdown, everything else
//! as plain paragraphs.
//!
//! The tokens are those of the HTML standard, whatever the page is like; there is no tree, so that
//! a page which closes nothing, or nests a million elements, costs no more than any other.

mod writer;

use html5gum::{DefaultEmitter, EndTag, StartTag, Token, Tokenizer};

use crate::url::Url;
use writer::{Gap, Writer};

/// Links can make text longer than its page. This is as much as a page may have bytes.
const MOST_TEXT: usize = crate::get::MOST_BYTES;

/// The title, if there is one, and the text.
pub(crate) fn to_text(html: &str, base: &Url) -> (Option<String>, String) {
    let reader = Reader::read(html, base, true);
    // A menu without an end has taken the page with it.
    let reader = if reader.left_out.is_some() { Reader::read(html, base, false) } else { reader };
    let title: Vec<&str> = reader.title.split_whitespace().collect();
    ((!title.is_empty()).then(|| title.join(" ")), reader.writer.finish())
}

struct Reader<'a> {
    base: &'a Url,
    writer: Writer,
    title: String,
    in_title: bool,
    leave_out_menus: bool,
    /// The element that is left out, and how many of its name are open.
    left_out: Option<(Vec<u8>, u32)>,
    /// For each open list the number of its next item, if it has numbers.
    lists: Vec<Option<u32>>,
    /// For each open link where it begins in the text, and where it leads.
    links: Vec<Option<(usize, Url)>>,
    /// Whether the row has a cell already.
    in_row: bool,
}

impl<'a> Reader<'a> {
    fn read(html: &str, base: &'a Url, leave_out_menus: bool) -> Self {
        let (writer, title, lists, links) =
            (Writer::default(), String::new(), Vec::new(), Vec::new());
        let mut reader = Self {
            base,
            writer,
            title,
            in_title: false,
            leave_out_menus,
            left_out: None,
            lists,
            links,
            in_row: false,
        };
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
            match token {
                Token::StartTag(tag) => reader.start(&tag),
                Token::EndTag(tag) => reader.end(&tag),
                Token::String(text) => reader.text(&String::from_utf8_lossy(&text)),
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
            if reader.writer.length() > MOST_TEXT {
                reader.writer.words("[the rest of the page is omitted]");
                break;
            }
        }
        reader
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.push_str(&text[..text.floor_char_boundary(500)]);
        } else if self.left_out.is_none() {
            self.writer.words(text);
        }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = tag.name.as_slice();
        if let Some((left_out, open)) = &mut self.left_out {
            *open += u32::from(left_out == name && !tag.self_closing);
            return;
        }
        if is_left_out(name) || name == b"nav" && self.leave_out_menus {
            if !tag.self_closing {
                self.left_out = Some((name.to_vec(), 1));
            }
            return;
        }
        let attribute = |name: &[u8]| {
            tag.attributes.get(name).map(|value| String::from_utf8_lossy(value).into_owned())
        };
        match name {
            b"title" => self.in_title = self.title.is_empty(),
            b"br" => self.writer.line_break(),
            b"hr" => {
                self.writer.gap(Gap::Paragraph);
                self.writer.words("---");
                self.writer.gap(Gap::Paragraph);
            }
            b"pre" => self.writer.begin_code(),
            b"code" | b"kbd" | b"samp" | b"tt" => self.writer.tick(),
            b"blockquote" => self.writer.quote(true),
            b"ul" | b"menu" | b"ol" => {
                self.writer.gap(if self.lists.is_empty() { Gap::Paragraph } else { Gap::Line });
                let first =
                    attribute(b"start").and_then(|start| start.trim().parse().ok()).unwrap_or(1);
                self.lists.push((name == b"ol").then_some(first));
                self.writer.indent(self.lists.len().saturating_sub(1));
            }
            b"li" => self.item(),
            b"tr" => {
                self.writer.gap(Gap::Line);
                self.in_row = false;
            }
            b"td" | b"th" => {
                if std::mem::replace(&mut self.in_row, true) {
                    self.writer.words(" | ");
                }
            }
            b"a" => {
                let leads_away = |href: &String| !href.trim_start().starts_with('#');
                let target = attribute(b"href")
                    .filter(leads_away)
                    .and_then(|href| self.base.join(&href).ok());
                self.links.push(target.map(|target| (self.writer.open("["), target)));
            }
            b"img" => {
                if let Some(alt) = attribute(b"alt").filter(|alt| !alt.trim().is_empty()) {
                    self.writer.words(&format!("[image: {}]", alt.trim()));
                }
            }
            [b'h', level @ b'1'..=b'6'] => {
                self.writer.gap(Gap::Paragraph);
                self.writer.marker(&format!("{} ", "#".repeat(usize::from(level - b'0'))));
            }
            name => self.writer.gap(gap_around(name)),
        }
    }

    fn end(&mut self, tag: &EndTag<()>) {
        let name = tag.name.as_slice();
        if let Some((left_out, open)) = &mut self.left_out {
            *open -= u32::from(left_out == name);
            if *open == 0 {
                self.left_out = None;
            }
            return;
        }
        match name {
            b"title" => self.in_title = false,
            b"pre" => self.writer.end_code(),
            b"code" | b"kbd" | b"samp" | b"tt" => self.writer.tick(),
            b"blockquote" => self.writer.quote(false),
            b"ul" | b"menu" | b"ol" => {
                self.lists.pop();
                self.writer.indent(self.lists.len().saturating_sub(1));
                self.writer.end_marked(if self.lists.is_empty() {
                    Gap::Paragraph
                } else {
                    Gap::Line
                });
            }
            b"a" => {
                if let Some(Some((start, target))) = self.links.pop() {
                    self.writer.close(start, &format!("]({target})"));
                }
            }
            b"li" => self.writer.end_marked(Gap::Line),
            [b'h', b'1'..=b'6'] => self.writer.end_marked(Gap::Paragraph),
            name => self.writer.gap(gap_around(name)),
        }
    }

    fn item(&mut self) {
        self.writer.end_marked(Gap::Line);
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(None) | None => "- ".to_owned(),
        };
        self.writer.marker(&marker);
    }
}

/// What holds no words of the page.
fn is_left_out(name: &[u8]) -> bool {
    matches!(
        name,
        b"script"
            | b"style"
            | b"template"
            | b"svg"
            | b"math"
            | b"iframe"
            | b"object"
            | b"noscript"
            | b"noembed"
            | b"noframes"
    )
}

/// What stands between an element and what is around it.
fn gap_around(name: &[u8]) -> Gap {
    match name {
        b"p" | b"figure" | b"table" | b"dl" | b"details" | b"fieldset" | b"article" | b"main"
        | b"header" | b"footer" => Gap::Paragraph,
        b"address" | b"aside" | b"body" | b"caption" | b"dd" | b"div" | b"dt" | b"figcaption"
        | b"form" | b"head" | b"html" | b"legend" | b"nav" | b"option" | b"section" | b"select"
        | b"summary" | b"tbody" | b"tfoot" | b"thead" => Gap::Line,
        _ => Gap::None,
    }
}

#[cfg(test)]
mod tests;
