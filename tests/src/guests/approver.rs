//! Somebody at the terminal who has decided beforehand.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use cofferdam::policy::ApprovalQuestion;
use cofferdam::tools::{ApprovalAnswer, Approver};

/// Answers questions by a list, with *no* once the list is at its end, and remembers what was
/// asked.
#[derive(Debug, Default)]
pub struct ScriptedApprover {
    answers: Mutex<VecDeque<ApprovalAnswer>>,
    questions: Mutex<Vec<ApprovalQuestion>>,
}

impl ScriptedApprover {
    /// With these answers.
    pub fn with_answers(answers: impl IntoIterator<Item = ApprovalAnswer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), questions: Mutex::default() }
    }

    /// What was asked so far.
    pub fn questions(&self) -> Vec<ApprovalQuestion> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for ScriptedApprover {
    fn ask_pages<'a>(
        &'a self,
        question: &'a ApprovalQuestion,
    ) -> std::pin::Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(question.clone());
        let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(async move { next.unwrap_or(ApprovalAnswer::No { guidance: None }) })
    }
}
