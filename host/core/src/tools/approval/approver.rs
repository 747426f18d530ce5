//! The interface that answers questions about effects, and its answers.

use futures_util::future::BoxFuture;

use crate::policy::ApprovalQuestion;
use crate::tools::audit_sink::CallIdentity;

/// The user interface that asks for approval, such as a dialog in a terminal.
///
/// ```
/// use std::sync::Arc;
///
/// use cofferdam::Host;
/// use cofferdam::policy::{ApprovalQuestion, Effect};
/// use cofferdam::tools::{ApprovalAnswer, Approver};
/// use futures_util::future::BoxFuture;
/// use serde_json::json;
///
/// /// Approves changes of one file, and nothing else.
/// struct NotesOnly;
///
/// impl Approver for NotesOnly {
///     fn ask_pages<'a>(
///         &'a self,
///         question: &'a ApprovalQuestion,
///     ) -> BoxFuture<'a, ApprovalAnswer> {
///         let is_notes = match &question.effect {
///             Effect::Write { changes, .. } => {
///                 changes.paths().all(|path| path.as_str() == "notes.txt")
///             }
///             _ => false,
///         };
///         let answer = if is_notes {
///             ApprovalAnswer::Yes
///         } else {
///             ApprovalAnswer::No { guidance: Some("Change only notes.txt.".to_owned()) }
///         };
///         Box::pin(std::future::ready(answer))
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let workspace = tempfile::tempdir()?;
/// let host = Host::builder(workspace.path()).approver(Arc::new(NotesOnly)).build()?;
/// let file = |path: &str| json!({"path": path, "content": "one\n"});
/// host.call_tool("write_file", &file("notes.txt")).await?;
/// host.call_tool("write_file", &file("main.c")).await?;
/// assert!(workspace.path().join("notes.txt").exists());
/// assert!(!workspace.path().join("main.c").exists());
/// # Ok(())
/// # })
/// # }
/// ```
pub trait Approver: Send + Sync {
    /// Shows a question and waits for the answer without a time limit. The future may be dropped
    /// when the request is cancelled; the dialog then disappears.
    fn ask_pages<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer>;

    /// Shows a question of this call, as [`ask_pages`](Self::ask_pages) does. A user interface that
    /// shows questions next to their calls implements this method too.
    fn ask_for_call<'a>(
        &'a self,
        call: &'a CallIdentity,
        question: &'a ApprovalQuestion,
    ) -> BoxFuture<'a, ApprovalAnswer> {
        let _ = call;
        self.ask_pages(question)
    }
}

/// The possible answers of a user (R-38).
///
/// This enum is closed: code that matches it acts on the user's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Approves this effect once.
    Yes,
    /// Approves this effect, and for the rest of the session everything in the scope of the
    /// question.
    YesForScope,
    /// Approves like [`YesForScope`](Self::YesForScope), and adds the rule of the question to the
    /// user's policy file.
    YesAlways,
    /// Rejects the effect. With guidance the model continues from there; without, the request ends
    /// (R-44, R-45).
    No {
        /// The user's instructions to the model. May have several lines.
        guidance: Option<String>,
    },
    /// Nobody answered. The effect is denied, and the denial says what would allow it.
    Unanswered {
        /// The reason, as a clause, such as "the client cannot ask the user".
        reason: String,
    },
}
