//! Asks the user through the client, next to the call that needs the answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cofferdam::policy::ApprovalQuestion;
use cofferdam::sandbox::CommandSandbox;
use cofferdam::tools::{ApprovalAnswer, Approver, CallIdentity};
use futures_util::future::BoxFuture;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::calls::CallEvent;
use crate::question_text::{WordedQuestion, word_question};

/// The largest guidance of a rejection, in characters.
const MAX_GUIDANCE_LEN: usize = 4000;

/// A question that waits for the answer of the user.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) worded: WordedQuestion,
    pub(crate) answer: oneshot::Sender<ApprovalAnswer>,
}

/// The approver of one client. Each question goes to the request of its call.
pub(crate) struct ClientApprover {
    commands: Arc<CommandSandbox>,
    timeout: Duration,
    /// Whether an approval may cover more than one effect.
    offers_scopes: bool,
    /// The running calls, by their IDs.
    calls: Mutex<HashMap<String, AskableCall>>,
}

/// A running call.
#[derive(Clone, Debug)]
struct AskableCall {
    events: mpsc::Sender<CallEvent>,
    /// Whether its client can ask the user.
    can_ask: bool,
}

/// Removes a call when it is over.
pub(crate) struct CallRegistration {
    approver: Arc<ClientApprover>,
    call: String,
}

impl ClientApprover {
    pub(crate) fn new(
        commands: Arc<CommandSandbox>,
        timeout: Duration,
        offers_scopes: bool,
    ) -> Self {
        Self { commands, timeout, offers_scopes, calls: Mutex::default() }
    }

    /// Registers a call whose questions go to `events`.
    pub(crate) fn register(
        self: &Arc<Self>,
        call: &str,
        events: mpsc::Sender<CallEvent>,
        can_ask: bool,
    ) -> CallRegistration {
        let askable = AskableCall { events, can_ask };
        self.lock_calls().insert(call.to_owned(), askable);
        CallRegistration { approver: Arc::clone(self), call: call.to_owned() }
    }

    fn lock_calls(&self) -> std::sync::MutexGuard<'_, HashMap<String, AskableCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, call: Option<&str>, question: &ApprovalQuestion) -> ApprovalAnswer {
        let unanswered = |reason: &str| ApprovalAnswer::Unanswered { reason: reason.to_owned() };
        let call = call.and_then(|call| self.lock_calls().get(call).cloned());
        let Some(call) = call else {
            return unanswered("its call has ended, so there is nobody to ask");
        };
        if !call.can_ask {
            return unanswered("the MCP client cannot ask the user (it has no form elicitation)");
        }
        let mut worded = match word_question(question, &self.commands) {
            Ok(worded) => worded,
            Err(reason) => return unanswered(&reason),
        };
        if !self.offers_scopes {
            worded.scope = None;
        }
        let (answer, answered) = oneshot::channel();
        let question = CallEvent::Question(OpenQuestion { worded, answer });
        if call.events.send(question).await.is_err() {
            return unanswered("its call has ended, so there is nobody to ask");
        }
        match tokio::time::timeout(self.timeout, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => unanswered("the MCP client closed the question without an answer"),
            Err(_) => unanswered(&format!(
                "the user did not answer within {} seconds",
                self.timeout.as_secs_f64().round()
            )),
        }
    }
}

impl Approver for ClientApprover {
    fn ask_pages<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(self.ask(None, question))
    }

    fn ask_for_call<'a>(
        &'a self,
        call: &'a CallIdentity,
        question: &'a ApprovalQuestion,
    ) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(self.ask(Some(&call.call), question))
    }
}

impl Drop for CallRegistration {
    fn drop(&mut self) {
        self.approver.lock_calls().remove(&self.call);
    }
}

impl WordedQuestion {
    /// Returns the form that a client shows.
    ///
    /// # Errors
    ///
    /// None in practice: the schema is a constant with one text.
    pub(crate) fn to_form(&self) -> Result<ElicitRequestParams, serde_json::Error> {
        let mut choices = vec!["once"];
        let mut names = vec!["Yes, this once".to_owned()];
        if let Some(scope) = &self.scope {
            choices.push("session");
            names.push(format!("Yes, and don't ask again in this session for {scope}"));
        }
        choices.push("reject");
        names.push("No".to_owned());
        let mut properties = json!({
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": "once approves this effect, session also approves its scope for \
                    the rest of the session, reject denies it",
                "enum": choices,
                "enumNames": names,
            },
        });
        if self.has_guidance {
            properties["reason"] = json!({
                "type": "string",
                "title": "Reason",
                "description": "After a rejection: what the agent should do instead (optional)",
                "maxLength": MAX_GUIDANCE_LEN,
            });
        }
        let requested_schema: ElicitationSchema = serde_json::from_value(json!({
            "type": "object",
            "properties": properties,
            "required": ["decision"],
        }))?;
        let message = match &self.scope {
            Some(scope) => format!("{}\nThe choice `session` covers {scope}.\n", self.text),
            None => self.text.clone(),
        };
        Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
    }

    /// Returns the answer of a form. Anything but a valid approval denies the effect.
    pub(crate) fn read_answer(&self, result: &ElicitResult) -> ApprovalAnswer {
        let unanswered = |reason: &str| ApprovalAnswer::Unanswered { reason: reason.to_owned() };
        match result.action {
            ElicitationAction::Accept => {}
            ElicitationAction::Decline => return ApprovalAnswer::No { guidance: None },
            ElicitationAction::Cancel => {
                return unanswered("the user closed the question without an answer");
            }
            _ => return unanswered("the MCP client sent an unknown answer"),
        }
        let field = |name: &str| {
            let content = result.content.as_ref()?;
            content.get(name).and_then(Value::as_str)
        };
        match field("decision") {
            Some("once") => ApprovalAnswer::Yes,
            Some("session") if self.scope.is_some() => ApprovalAnswer::YesForScope,
            Some("reject") => ApprovalAnswer::No {
                guidance: field("reason")
                    .filter(|_| self.has_guidance)
                    .map(|reason| reason.chars().take(MAX_GUIDANCE_LEN).collect()),
            },
            Some(_) | None => unanswered("the MCP client sent an answer that was not offered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(scope: bool, has_guidance: bool) -> WordedQuestion {
        let scope = scope.then(|| "commands that begin with `make`".to_owned());
        WordedQuestion { text: "bash wants to run `make`".into(), scope, has_guidance }
    }

    fn answer(question: &WordedQuestion, result: Value) -> ApprovalAnswer {
        question.read_answer(&serde_json::from_value(result).expect("a result"))
    }

    #[test]
    fn only_an_offered_choice_approves() {
        let accept =
            |decision: Value| json!({"action": "accept", "content": {"decision": decision}});
        let (with, without) = (question(true, true), question(false, true));
        assert_eq!(answer(&with, accept(json!("once"))), ApprovalAnswer::Yes);
        assert_eq!(answer(&with, accept(json!("session"))), ApprovalAnswer::YesForScope);
        let denied = [
            answer(&without, accept(json!("session"))),
            answer(&with, accept(json!("always"))),
            answer(&with, accept(json!(true))),
            answer(&with, accept(json!(["once"]))),
            answer(&with, json!({"action": "accept"})),
            answer(&with, json!({"action": "accept", "content": "once"})),
            answer(&with, json!({"action": "cancel", "content": {"decision": "once"}})),
        ];
        for denied in denied {
            assert!(matches!(denied, ApprovalAnswer::Unanswered { .. }), "{denied:?}");
        }
        let declined = json!({"action": "decline", "content": {"decision": "once"}});
        assert_eq!(answer(&with, declined), ApprovalAnswer::No { guidance: None });
    }

    #[test]
    fn a_rejection_has_guidance_only_where_it_has_an_effect() {
        let reject = json!({
            "action": "accept",
            "content": {"decision": "reject", "reason": "x".repeat(10_000)},
        });
        let ApprovalAnswer::No { guidance: Some(words) } =
            answer(&question(true, true), reject.clone())
        else {
            panic!("not a rejection with words")
        };
        assert_eq!(words.len(), MAX_GUIDANCE_LEN);
        assert_eq!(answer(&question(true, false), reject), ApprovalAnswer::No { guidance: None });
    }

    #[test]
    fn the_form_offers_the_choices_of_the_question() {
        let form = |question: &WordedQuestion| {
            let form = serde_json::to_value(question.to_form().expect("a form")).expect("JSON");
            (form["message"].clone(), form["requestedSchema"]["properties"].clone())
        };
        let (message, properties) = form(&question(true, true));
        assert_eq!(properties["decision"]["enum"], json!(["once", "session", "reject"]));
        assert!(properties["reason"].is_object());
        assert!(message.as_str().expect("a text").contains("covers commands that begin with"));
        let (_, properties) = form(&question(false, false));
        assert_eq!(properties["decision"]["enum"], json!(["once", "reject"]));
        assert!(properties["reason"].is_null());
    }
}
