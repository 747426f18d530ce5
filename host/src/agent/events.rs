//! What happens during a request, for everyone who watches: the terminal, the JSON stream, a
//! journal.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RequestOutcome;
use super::ports::ResponseDelta;
use crate::conversation::{
    AssistantTurn, OpenTurn, PrunedOutput, RollingSummary, TokenUsage, ToolCall, ToolResult,
};

/// Someone who watches. Watching cannot fail, and cannot change what happens.
pub trait Observer: Send + Sync {
    /// Called for each event, in order, from the task that causes it: return soon.
    fn observe(&self, event: &AgentEvent<'_>);

    /// Whether somebody is shown a response before it is whole. What nobody has seen may still
    /// begin anew.
    fn is_live(&self) -> bool {
        true
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub enum AgentEvent<'a> {
    /// A request begins.
    RequestStarted {
        /// Eight characters, new for each request.
        request: &'a str,
        /// What the user said.
        prompt: &'a str,
        /// Who answers, as its provider names it.
        model: &'a str,
    },
    /// The model is asked, for the nth time in this request.
    TurnStarted {
        /// From 1.
        turn: u32,
    },
    /// What is sent of the conversation becomes shorter.
    ContextFitting(ContextFitting<'a>),
    /// A piece of the response.
    Delta(ResponseDelta<'a>),
    /// A turn without calls is complete: its text is final.
    Answered(&'a AssistantTurn),
    /// The model asks for calls. None of them has begun.
    CallsRequested(&'a OpenTurn),
    /// A call is about to run: whoever writes this down has done so before the call can have any
    /// effect.
    CallStarted {
        /// The call.
        call: &'a ToolCall,
        /// The order it is run in.
        tier: Tier,
        /// What it is about, in a few words, such as a path or a command line.
        summary: &'a str,
    },
    /// A running call tells how far it is.
    CallProgress {
        /// The call.
        call: &'a ToolCall,
        /// One line.
        message: &'a str,
    },
    /// A sub-agent that works for a running call has finished a turn, which costs what the turn of
    /// anybody costs.
    SubAgentTurn {
        /// The call.
        call: &'a ToolCall,
        /// What the turn took.
        usage: TokenUsage,
    },
    /// The model was paid for a response that is no part of the conversation: an empty one, or a
    /// summary of no use.
    Discarded {
        /// What it took.
        usage: TokenUsage,
    },
    /// A call has its result.
    CallFinished {
        /// The call.
        call: &'a ToolCall,
        /// The order it was run in; `None` if it was refused before anything could be known of it.
        tier: Option<Tier>,
        /// What it is about, in a few words.
        summary: &'a str,
        /// What the model is told.
        result: &'a ToolResult,
        /// What the user is shown instead, if the tool says so.
        view: Option<&'a ToolView>,
        /// Without the time spent waiting for approval.
        duration: Duration,
        /// What it leaves to later calls of the session, if anything.
        state_delta: Option<&'a ToolStateDelta>,
        /// Why it was denied, if it was.
        denied: Option<&'a DeniedCallSummary>,
        /// The exit code of the last command that it ran; `None` if it ran none, or that one did
        /// not exit by itself.
        exit_code: Option<i32>,
    },
    /// A turn, as it goes into the transcript: with calls, an answer, or the text that arrived
    /// before a failure.
    TurnFinished(&'a AssistantTurn),
    /// Something the user should know.
    Notice(&'a str),
    /// The request is over.
    RequestFinished {
        /// How it ended.
        outcome: &'a RequestOutcome,
    },
}

/// Why a call was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeniedCallSummary {
    /// Stable and short, such as `policy`, `mode` or `rejected-by-user`.
    pub code: String,
    /// What was denied, and why.
    pub reason: String,
    /// What would allow it, if anything does.
    pub remedy: Option<String>,
}

/// What a call leaves to later calls of its session, also of one that is resumed. Only those who
/// run tools know what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStateDelta {
    /// The component of the tool.
    pub component: String,
    /// The tool.
    pub tool: String,
    /// What the tool has set, and what it has deleted, by its keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<(String, Option<String>)>,
    /// Which version of files the model knows since then, by their places; nothing if there is no
    /// file any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, Option<String>)>,
}

/// How the conversation is made to fit into the model's window.
#[derive(Clone, Copy, Debug)]
pub enum ContextFitting<'a> {
    /// Old results are left out from now on.
    Pruned(PrunedOutput),
    /// The model is asked for a summary of the oldest part, which can take a while.
    Summarising,
    /// The summary stands for that part from now on. Whoever keeps a record of the conversation
    /// needs this in it.
    Summarised {
        /// All that it stands for, and the words.
        summary: &'a RollingSummary,
        /// What was sent before and what is sent now, in estimated tokens.
        tokens: (u64, u64),
        /// What making it cost.
        usage: TokenUsage,
    },
}

/// In what order a call may run, computed by the host from what its tool can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// May ask a model and change nothing; runs beside anything of its tier, first.
    Research,
    /// May read and change nothing; runs beside anything of its tier, second.
    ReadOnly,
    /// May change something; runs alone, last, in the model's order.
    Write,
}

impl Tier {
    /// The word that users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Research => "research",
            Self::ReadOnly => "read-only",
            Self::Write => "write",
        }
    }
}

/// What a tool shows to the user apart from what it tells the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolView {
    /// Plain text.
    Text(String),
    /// A unified diff.
    Diff(String),
    /// Cells under a header.
    Table {
        /// One text for each column.
        header: Vec<String>,
        /// Each as long as the header.
        rows: Vec<Vec<String>>,
    },
}
