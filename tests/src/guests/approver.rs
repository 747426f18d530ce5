//! Somebody at the terminal who has decided beforehand.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use cofferdam::policy::Question;
use cofferdam::tools::{Answer, Approver};

/// Answers questions by a list, with *no* once the list is at its end, and remembers what was asked.
#[derive(Debug, Default)]
pub struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Question>>,
}

impl Scripted {
    /// With these answers.
    pub fn with(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() }
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for Scripted {
    fn ask<'a>(&'a self, question: &'a Question) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(question.clone());
        let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(async move { next.unwrap_or(Answer::No { guidance: None }) })
    }
}
