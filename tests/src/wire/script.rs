//! What a scripted model says.

use serde_json::Value;

/// The answer to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) answer: Answer,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) cut: Cut,
    pub(super) crlf: bool,
    pub(super) waits: bool,
    pub(super) only_to: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Stream { said: Said, ending: Ending },
    Failure { status: u16, kind: &'static str, message: &'static str },
    Raw(Vec<u8>),
    Endless { begin: Vec<u8>, again: Vec<u8> },
    Silence,
}

/// A response before it is put into anybody's format.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) blocks: Vec<Block>,
    pub(super) stop: Option<Stop>,
    pub(super) usage: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub(super) enum Block {
    Text(String),
    Thinking(String),
    Call { id: Option<String>, name: String, arguments: String },
}

/// Why the model stops, where that is not plain from what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The limit on output.
    Length,
    /// The provider withholds the rest.
    Withheld,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Whole,
    Missing,
    Disconnect,
    Error { kind: &'static str, message: &'static str },
    Silence,
}

/// How the bytes of a stream are parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// One piece for each event.
    Events,
    /// All in one piece.
    Nowhere,
    /// One piece for each byte.
    Bytes,
    /// Within each character that has more than one byte.
    InCharacters,
}

/// A response of text.
pub fn says(text: &str) -> Reply {
    nothing().text(text)
}

/// A response with one call.
pub fn calls(tool: &str, arguments: Value) -> Reply {
    nothing().call(tool, arguments)
}

/// A complete response without any content.
pub fn nothing() -> Reply {
    let said = Said { usage: Some((100, 10)), ..Said::default() };
    Reply::new(Answer::Stream { said, ending: Ending::Whole })
}

/// A status that is not 200, with an error in the provider's own form.
pub fn fails(status: u16, kind: &'static str, message: &'static str) -> Reply {
    Reply::new(Answer::Failure { status, kind, message })
}

/// These very bytes in place of an HTTP response.
pub fn raw(bytes: &[u8]) -> Reply {
    Reply::new(Answer::Raw(bytes.to_vec()))
}

/// These very bytes in place of an HTTP response, and then these others again and again, until the client has had enough. A client
/// that never has is stopped after 2 GiB.
pub fn endless(begin: &[u8], again: &[u8]) -> Reply {
    Reply::new(Answer::Endless { begin: begin.to_vec(), again: again.to_vec() })
}

/// The request is read, and never answered.
pub fn hangs() -> Reply {
    Reply::new(Answer::Silence)
}

impl Reply {
    fn new(answer: Answer) -> Self {
        Self { answer, headers: Vec::new(), cut: Cut::Events, crlf: false, waits: false, only_to: None }
    }

    /// Adds text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.block(Block::Text(text.to_owned()))
    }

    /// Adds thinking.
    #[must_use]
    pub fn thinks(self, text: &str) -> Self {
        self.block(Block::Thinking(text.to_owned()))
    }

    /// Adds a call, whose id the server makes up.
    #[must_use]
    pub fn call(self, tool: &str, arguments: Value) -> Self {
        self.block(Block::Call { id: None, name: tool.to_owned(), arguments: arguments.to_string() })
    }

    /// Adds a call with this id and with arguments that may be anything.
    #[must_use]
    pub fn raw_call(self, id: &str, tool: &str, arguments: &str) -> Self {
        self.block(Block::Call { id: Some(id.to_owned()), name: tool.to_owned(), arguments: arguments.to_owned() })
    }

    /// Stops for another reason than that all is said.
    #[must_use]
    pub fn stops(mut self, stop: Stop) -> Self {
        self.said().stop = Some(stop);
        self
    }

    /// Says what it cost; `None` says nothing of it.
    #[must_use]
    pub fn usage(mut self, usage: Option<(u64, u64)>) -> Self {
        self.said().usage = usage;
        self
    }

    /// The connection closes before the end of the last block.
    #[must_use]
    pub fn breaks_off(self) -> Self {
        self.ends(Ending::Disconnect)
    }

    /// The stream ends in good order, but without the events that end a response.
    #[must_use]
    pub fn without_end(self) -> Self {
        self.ends(Ending::Missing)
    }

    /// An error in place of the end, in a stream that began with status 200.
    #[must_use]
    pub fn then_error(self, kind: &'static str, message: &'static str) -> Self {
        self.ends(Ending::Error { kind, message })
    }

    /// Nothing more comes, and the connection stays open.
    #[must_use]
    pub fn then_hangs(self) -> Self {
        self.ends(Ending::Silence)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Parts the bytes in this way.
    #[must_use]
    pub fn cut(mut self, cut: Cut) -> Self {
        self.cut = cut;
        self
    }

    /// Ends lines with CR LF.
    #[must_use]
    pub fn crlf(mut self) -> Self {
        self.crlf = true;
        self
    }

    /// Comes only after [`Server::release`](super::Server::release).
    #[must_use]
    pub fn when_released(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Answers only a request whose first user message holds this text: for conversations that run side by side.
    #[must_use]
    pub fn to(mut self, text: &str) -> Self {
        self.only_to = Some(text.to_owned());
        self
    }

    fn block(mut self, block: Block) -> Self {
        self.said().blocks.push(block);
        self
    }

    fn ends(mut self, with: Ending) -> Self {
        match &mut self.answer {
            Answer::Stream { ending, .. } => *ending = with,
            other => panic!("only a stream has an ending, not {other:?}"),
        }
        self
    }

    fn said(&mut self) -> &mut Said {
        match &mut self.answer {
            Answer::Stream { said, .. } => said,
            other => panic!("only a stream says something, not {other:?}"),
        }
    }
}

/// A text in pieces of some characters each, as models produce it.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(7).map(|piece| piece.iter().collect()).collect()
}
