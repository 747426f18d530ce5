//! What a scripted model says.

use serde_json::Value;

/// The answer to one request.
#[derive(Clone, Debug)]
pub struct ScriptedReply {
    pub(super) body: ReplyBody,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) chunking: StreamChunking,
    pub(super) crlf: bool,
    pub(super) waits_for_release: bool,
    pub(super) only_for: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum ReplyBody {
    Stream { content: ResponseContent, ending: StreamEnding },
    Failure { status: u16, kind: &'static str, message: &'static str },
    Raw(Vec<u8>),
    Endless { prefix: Vec<u8>, repeated: Vec<u8> },
    Hang,
}

/// A response before it is put into anybody's format.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseContent {
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub(super) enum ContentBlock {
    Text(String),
    Thinking(String),
    Call { id: Option<String>, name: String, arguments: String },
}

/// Why the model stops, where that is not plain from what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The limit on output.
    Length,
    /// The provider withholds the rest.
    ContentFilter,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum StreamEnding {
    Complete,
    WithoutFinalEvent,
    Disconnect,
    Error { kind: &'static str, message: &'static str },
    Hang,
}

/// How the bytes of a stream are parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamChunking {
    /// One piece for each event.
    PerEvent,
    /// All in one piece.
    Whole,
    /// One piece for each byte.
    PerByte,
    /// Within each character that has more than one byte.
    WithinCharacters,
}

/// A response of text.
pub fn text_reply(text: &str) -> ScriptedReply {
    empty_reply().with_text(text)
}

/// A response with one call.
pub fn call_reply(tool: &str, arguments: Value) -> ScriptedReply {
    empty_reply().with_call(tool, arguments)
}

/// A complete response without any content.
pub fn empty_reply() -> ScriptedReply {
    let said = ResponseContent { usage: Some((100, 10)), ..ResponseContent::default() };
    ScriptedReply::new(ReplyBody::Stream { content: said, ending: StreamEnding::Complete })
}

/// A status that is not 200, with an error in the provider's own form.
pub fn error_reply(status: u16, kind: &'static str, message: &'static str) -> ScriptedReply {
    ScriptedReply::new(ReplyBody::Failure { status, kind, message })
}

/// These very bytes in place of an HTTP response.
pub fn raw_reply(bytes: &[u8]) -> ScriptedReply {
    ScriptedReply::new(ReplyBody::Raw(bytes.to_vec()))
}

/// These very bytes in place of an HTTP response, and then these others again and again, until the
/// client has had enough. A client that never has is stopped after 2 GiB.
pub fn endless_reply(begin: &[u8], again: &[u8]) -> ScriptedReply {
    ScriptedReply::new(ReplyBody::Endless { prefix: begin.to_vec(), repeated: again.to_vec() })
}

/// The request is read, and never answered.
pub fn hanging_reply() -> ScriptedReply {
    ScriptedReply::new(ReplyBody::Hang)
}

impl ScriptedReply {
    fn new(body: ReplyBody) -> Self {
        Self {
            body,
            headers: Vec::new(),
            chunking: StreamChunking::PerEvent,
            crlf: false,
            waits_for_release: false,
            only_for: None,
        }
    }

    /// Adds text.
    #[must_use]
    pub fn with_text(self, text: &str) -> Self {
        self.push_block(ContentBlock::Text(text.to_owned()))
    }

    /// Adds thinking.
    #[must_use]
    pub fn with_thinking(self, text: &str) -> Self {
        self.push_block(ContentBlock::Thinking(text.to_owned()))
    }

    /// Adds a call, whose id the server makes up.
    #[must_use]
    pub fn with_call(self, tool: &str, arguments: Value) -> Self {
        self.push_block(ContentBlock::Call {
            id: None,
            name: tool.to_owned(),
            arguments: arguments.to_string(),
        })
    }

    /// Adds a call with this id and with arguments that may be anything.
    #[must_use]
    pub fn with_raw_call(self, id: &str, tool: &str, arguments: &str) -> Self {
        self.push_block(ContentBlock::Call {
            id: Some(id.to_owned()),
            name: tool.to_owned(),
            arguments: arguments.to_owned(),
        })
    }

    /// Stops for another reason than that all is said.
    #[must_use]
    pub fn with_stop_reason(mut self, stop: StopReason) -> Self {
        self.content_mut().stop = Some(stop);
        self
    }

    /// Says what it cost; `None` says nothing of it.
    #[must_use]
    pub fn with_usage(mut self, usage: Option<(u64, u64)>) -> Self {
        self.content_mut().usage = usage;
        self
    }

    /// The connection closes before the end of the last block.
    #[must_use]
    pub fn disconnecting(self) -> Self {
        self.with_ending(StreamEnding::Disconnect)
    }

    /// The stream ends in good order, but without the events that end a response.
    #[must_use]
    pub fn without_final_event(self) -> Self {
        self.with_ending(StreamEnding::WithoutFinalEvent)
    }

    /// An error in place of the end, in a stream that began with status 200.
    #[must_use]
    pub fn with_error(self, kind: &'static str, message: &'static str) -> Self {
        self.with_ending(StreamEnding::Error { kind, message })
    }

    /// Nothing more comes, and the connection stays open.
    #[must_use]
    pub fn then_hanging(self) -> Self {
        self.with_ending(StreamEnding::Hang)
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Parts the bytes in this way.
    #[must_use]
    pub fn with_chunking(mut self, cut: StreamChunking) -> Self {
        self.chunking = cut;
        self
    }

    /// Ends lines with CR LF.
    #[must_use]
    pub fn with_crlf(mut self) -> Self {
        self.crlf = true;
        self
    }

    /// Comes only after [`ProviderServer::release`](super::ProviderServer::release).
    #[must_use]
    pub fn after_release(mut self) -> Self {
        self.waits_for_release = true;
        self
    }

    /// Answers only a request whose first user message holds this text: for conversations that run
    /// side by side.
    #[must_use]
    pub fn only_for(mut self, text: &str) -> Self {
        self.only_for = Some(text.to_owned());
        self
    }

    fn push_block(mut self, block: ContentBlock) -> Self {
        self.content_mut().blocks.push(block);
        self
    }

    fn with_ending(mut self, with: StreamEnding) -> Self {
        match &mut self.body {
            ReplyBody::Stream { ending, .. } => *ending = with,
            other => panic!("only a stream has an ending, not {other:?}"),
        }
        self
    }

    fn content_mut(&mut self) -> &mut ResponseContent {
        match &mut self.body {
            ReplyBody::Stream { content: said, .. } => said,
            other => panic!("only a stream says something, not {other:?}"),
        }
    }
}

/// A text in pieces of some characters each, as models produce it.
pub(super) fn split_text(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(7).map(|piece| piece.iter().collect()).collect()
}
