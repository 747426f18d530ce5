//! The parts of a Markdown page that the tests look at: fenced blocks and comments.
//!
//! | in a page | meaning |
//! |---|---|
//! | ```` ```console ```` | Runs each line that begins with `$ `; a line with `> ` continues it. |
//! | `# exit 3` below a command | Expects this exit code in place of 0. |
//! | other lines below a command | The output; `…` stands for any text, alone for any lines. |
//! | ```` ```toml policy ```` | Has to be a valid policy. |
//! | ```` ```toml config ```` | Has to be a valid configuration. |
//! | ```` ```json ```` | Has to be JSON. |
//! | ```` ```sh ````, ```` ```text ````, code | Is not run; the comment before it says why. |
//! | `<!-- test: file PATH -->` | The next block is also written to this file of the project. |
//! | `<!-- test: source PATH -->` | The next block is a part of this file of the repository. |
//! | `<!-- test: model NAME -->` | From here on `recordings/NAME.jsonl` is the model. |
//! | `<!-- test: plugin FILE -->` | Puts a small plugin into the project. |
//! | `<!-- test: sample -->` | Puts the sample project of `cofferdam demo` into the project. |

/// A part of a page, in the order of the page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The text of a comment.
    Comment(String),
    /// A fenced block.
    Block(Block),
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of the opening fence, from 1.
    pub(crate) line: usize,
    /// The words behind the opening fence.
    pub(crate) info: String,
    /// The lines between the fences, without the indentation of the fence.
    pub(crate) body: Vec<String>,
    /// Whether a comment stands right before it.
    pub(crate) has_comment: bool,
}

/// Returns the comments and blocks of a page.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut follows_comment = false;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let trimmed = line.trim_start();
        if let Some((fence, info)) = opening_fence(trimmed) {
            let indent = line.len() - trimmed.len();
            let inside = lines.by_ref().map(|(_, line)| line);
            let body = inside.take_while(|line| line.trim() != fence);
            let body = body.map(|line| line.get(indent..).unwrap_or_default().to_owned()).collect();
            let info = info.trim().to_owned();
            let block = Block { line: number + 1, info, body, has_comment: follows_comment };
            parts.push(Part::Block(block));
            follows_comment = false;
        } else if let Some(begun) = trimmed.strip_prefix("<!--") {
            let mut comment = begun.to_owned();
            while !comment.contains("-->") {
                let Some((_, more)) = lines.next() else { break };
                comment.push('\n');
                comment.push_str(more);
            }
            let comment = comment.split("-->").next().unwrap_or_default();
            parts.push(Part::Comment(comment.trim().to_owned()));
            follows_comment = true;
        } else if !trimmed.is_empty() {
            follows_comment = false;
        }
    }
    parts
}

/// The fence and the words behind it, if a line opens a block.
fn opening_fence(line: &str) -> Option<(&str, &str)> {
    let length = line.len() - line.trim_start_matches('`').len();
    (length >= 3).then(|| line.split_at(length)).filter(|(_, info)| !info.contains('`'))
}

/// The lines of a page outside of fenced blocks and comments, with their numbers from 1.
pub(crate) fn prose(text: &str) -> Vec<(usize, String)> {
    let (mut fence, mut in_comment) = (None, false);
    let mut prose = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(open) = fence {
            if trimmed == open {
                fence = None;
            }
        } else if in_comment || trimmed.starts_with("<!--") {
            in_comment = !trimmed.contains("-->");
        } else if let Some((open, _)) = opening_fence(trimmed) {
            fence = Some(open);
        } else {
            prose.push((number + 1, line.to_owned()));
        }
    }
    prose
}

#[test]
fn a_page_is_taken_apart() {
    let begin = "# T\n<!-- why\nnot -->\n\n```sh\na\n```\n";
    let end = "prose\n  ````console x\n  $ b\n   c\n  ````\n";
    let text = &format!("{begin}{end}");
    let block = |line, info: &str, body: &[&str], has_comment| {
        let body = body.iter().map(|line| (*line).to_owned()).collect();
        Part::Block(Block { line, info: info.to_owned(), body, has_comment })
    };
    let comment = Part::Comment("why\nnot".to_owned());
    let plain = block(5, "sh", &["a"], true);
    let indented = block(9, "console x", &["$ b", " c"], false);
    assert_eq!(parts(text), [comment, plain, indented]);
    let lines: Vec<usize> = prose(text).into_iter().map(|(number, _)| number).collect();
    assert_eq!(lines, [1, 4, 8]);
}
