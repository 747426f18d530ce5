//! Calls that wait for an answer of the user in another request.
//!
//! In versions without sessions, a server does not ask. It ends the request with the question, and
//! the client repeats the request with the answer. The call keeps running meanwhile, since it may
//! already have had effects. The state that the client carries is only a name for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{ElicitRequest, ElicitResult, InputRequest, InputRequiredResult, InputResponses};

use super::PreparedCall;
use crate::approver::OpenQuestion;

/// The number of calls that wait at the same time.
const MAX_PENDING_CALLS: usize = 64;
/// The key of the question among the inputs of a request.
const QUESTION_KEY: &str = "approval";

/// The calls that wait for an answer, by the names that clients carry.
#[derive(Default)]
pub(super) struct PendingCalls {
    calls: Mutex<HashMap<String, PendingCall>>,
}

struct PendingCall {
    call: PreparedCall,
    question: OpenQuestion,
}

impl PendingCalls {
    /// Keeps a call, and returns the result that asks for the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if too many calls wait. The call is cancelled then.
    pub(super) fn keep(
        &self,
        call: PreparedCall,
        question: OpenQuestion,
    ) -> Result<InputRequiredResult, String> {
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(|error| error.to_string())?;
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let required = ask_again(&name, &question)?;
        let mut calls = self.lock_calls();
        // Nobody came back for these before their time was over.
        calls.retain(|_, pending| !pending.question.answer.is_closed());
        if calls.len() >= MAX_PENDING_CALLS {
            return Err(format!(
                "the call needs approval, and {MAX_PENDING_CALLS} calls already wait for one"
            ));
        }
        calls.insert(name, PendingCall { call, question });
        Ok(required)
    }

    /// Passes the answer of the user on, and returns the call. Without an answer, the question is
    /// asked again.
    ///
    /// # Errors
    ///
    /// Returns an error if no call has this name, or if it was another call.
    pub(super) fn resume(
        &self,
        name: &str,
        request: &(String, String),
        answers: &InputResponses,
    ) -> Result<Result<PreparedCall, InputRequiredResult>, ErrorData> {
        let unknown =
            || ErrorData::invalid_params("no call waits for this answer; it may have ended", None);
        let mut calls = self.lock_calls();
        let pending = calls.get(name).ok_or_else(unknown)?;
        if pending.call.request != *request {
            return Err(ErrorData::invalid_params(
                "the answer belongs to a call with another tool or other arguments",
                None,
            ));
        }
        let Some(answer) = answers.get(QUESTION_KEY) else {
            let again = ask_again(name, &pending.question);
            return again.map(Err).map_err(|problem| ErrorData::internal_error(problem, None));
        };
        let result: ElicitResult = serde_json::from_value(answer.clone()).map_err(|_| {
            ErrorData::invalid_params("the answer is not a result of an elicitation", None)
        })?;
        let PendingCall { call, question } = calls.remove(name).ok_or_else(unknown)?;
        // If the time was over, the effect is already denied.
        let _ = question.answer.send(question.worded.read_answer(&result));
        Ok(Ok(call))
    }

    /// Cancels all calls.
    pub(super) fn clear(&self) {
        self.lock_calls().clear();
    }

    fn lock_calls(&self) -> MutexGuard<'_, HashMap<String, PendingCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ask_again(name: &str, question: &OpenQuestion) -> Result<InputRequiredResult, String> {
    let form = question.worded.to_form().map_err(|error| error.to_string())?;
    let request = InputRequest::Elicitation(ElicitRequest::new(form));
    let requests = BTreeMap::from([(QUESTION_KEY.to_owned(), request)]);
    Ok(InputRequiredResult::new(Some(requests), Some(name.to_owned())))
}
