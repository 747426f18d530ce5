//! The approval dialog of a chat: the same question and the same digits as everywhere, read key by key.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::keyboard::{Dialog, Key, Watch};
use super::line::Line;
use super::view::{Scene, View};
use crate::cli::dialog::{Choice, INSTEAD, THIS_CHAT, Turn, describe, where_it_runs};
use crate::cli::settle::SETTLE;
use crate::cli::wrap;
use crate::policy::Question;
use crate::sandbox::Commands;
use crate::tools::{Answer, Approver};

/// How often it is looked whether the question still stands.
const GLANCE: Duration = Duration::from_millis(50);
const CHOICE: &str = "> ";
/// Stands there while what is typed does not count yet.
const NOT_YET: &str = "";
const WORDS: &str = "| ";

/// A question on its way to whoever has the keyboard.
pub(super) struct Asked {
    question: Question,
    /// How a command runs.
    sandbox: String,
    answer: oneshot::Sender<Answer>,
}

/// Hands questions over, and waits.
pub(super) struct Asker {
    questions: mpsc::Sender<Asked>,
    commands: Arc<Commands>,
}

impl Asker {
    /// Where the questions come out.
    pub(super) fn new(commands: &Arc<Commands>) -> (Self, mpsc::Receiver<Asked>) {
        let (questions, receiver) = mpsc::channel();
        (Self { questions, commands: Arc::clone(commands) }, receiver)
    }
}

impl Approver for Asker {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let no = Answer::No { guidance: None };
            let sandbox = where_it_runs(question, &self.commands);
            match self.questions.send(Asked { question: question.clone(), sandbox, answer }) {
                Ok(()) => answered.await.unwrap_or(no),
                Err(_) => no,
            }
        })
    }
}

/// Asks, and hands the answer back. A question that nobody waits for any more disappears. If the user is gone and has not
/// answered, the request is stopped: that is nobody's no.
pub(super) fn converse(
    watch: &mut Watch<'_>,
    view: &View,
    asked: Asked,
    is_over: &dyn Fn() -> bool,
    cancel: &CancellationToken,
) -> io::Result<()> {
    let has_scope = asked.question.scope.is_some();
    view.set_scene(Scene::Asking { mark: NOT_YET, answer: Line::default() });
    // A diff that was cut is whole in a file for as long as the question is open.
    let described = describe(&asked.question, THIS_CHAT, &asked.sandbox);
    let is_over = || is_over() || asked.answer.is_closed();
    let pages = described.pages.laid_out(wrap::size());
    let answer = ask(watch, view, &pages, has_scope, &is_over);
    view.set_scene(Scene::Running);
    let without = match answer {
        Ok(Some(answer)) => {
            // It may have been cancelled in this very moment.
            drop(asked.answer.send(answer));
            return Ok(());
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if !asked.answer.is_closed() {
        cancel.cancel();
    }
    without
}

/// Shows page after page, and asks behind the last one. What was typed before a page could be read is no answer to it.
fn ask(watch: &mut Watch<'_>, view: &View, pages: &[String], has_scope: bool, is_over: &dyn Fn() -> bool) -> io::Result<Option<Answer>> {
    for (n, page) in pages.iter().enumerate() {
        view.set_scene(Scene::Asking { mark: NOT_YET, answer: Line::default() });
        view.say_in_dialog(page);
        let mut dialog = watch.dialog(SETTLE, is_over)?;
        if n + 1 == pages.len() {
            return answer(&mut dialog, view, has_scope, is_over);
        }
        match turned(&mut dialog, view, is_over)? {
            Turned::By(Turn::More) => {}
            Turned::By(Turn::No) => return guidance(&mut dialog, view, is_over),
            Turned::Rejected => return Ok(Some(Answer::No { guidance: None })),
            Turned::Over => return Ok(None),
        }
    }
    Ok(Some(Answer::No { guidance: None }))
}

/// What becomes of a page that is not the last one.
enum Turned {
    By(Turn),
    Rejected,
    Over,
}

fn turned(dialog: &mut Dialog<'_>, view: &View, is_over: &dyn Fn() -> bool) -> io::Result<Turned> {
    loop {
        match typed(dialog, view, CHOICE, is_over)? {
            Typed::Line(line) => match Turn::of(&line) {
                Ok(turn) => return Ok(Turned::By(turn)),
                Err(hint) => view.say_in_dialog(hint),
            },
            Typed::Rejected => return Ok(Turned::Rejected),
            Typed::Over => return Ok(Turned::Over),
        }
    }
}

fn answer(dialog: &mut Dialog<'_>, view: &View, has_scope: bool, is_over: &dyn Fn() -> bool) -> io::Result<Option<Answer>> {
    loop {
        let choice = match typed(dialog, view, CHOICE, is_over)? {
            Typed::Line(choice) => choice,
            Typed::Rejected => return Ok(Some(Answer::No { guidance: None })),
            Typed::Over => return Ok(None),
        };
        match Choice::of(&choice, has_scope) {
            Ok(Choice::Yes) => return Ok(Some(Answer::Yes)),
            Ok(Choice::YesForScope) => return Ok(Some(Answer::YesForScope)),
            Ok(Choice::No) => return guidance(dialog, view, is_over),
            Err(hint) => view.say_in_dialog(hint),
        }
    }
}

fn guidance(dialog: &mut Dialog<'_>, view: &View, is_over: &dyn Fn() -> bool) -> io::Result<Option<Answer>> {
    view.say_in_dialog(INSTEAD);
    let mut lines = Vec::new();
    loop {
        match typed(dialog, view, WORDS, is_over)? {
            Typed::Line(line) if !line.trim().is_empty() => lines.push(line),
            Typed::Line(_) => break,
            Typed::Rejected => return Ok(Some(Answer::No { guidance: None })),
            Typed::Over => return Ok(None),
        }
    }
    Ok(Some(Answer::No { guidance: (!lines.is_empty()).then(|| lines.join("\n")) }))
}

enum Typed {
    Line(String),
    /// Esc or Ctrl-C.
    Rejected,
    /// Nobody waits for an answer any more.
    Over,
}

fn typed(dialog: &mut Dialog<'_>, view: &View, mark: &'static str, is_over: &dyn Fn() -> bool) -> io::Result<Typed> {
    let mut line = Line::default();
    dialog.begins(mark);
    loop {
        view.set_scene(Scene::Asking { mark, answer: line.clone() });
        if is_over() {
            return Ok(Typed::Over);
        }
        match dialog.next(GLANCE)? {
            Some(Key::Enter) => {
                for (n, part) in line.text().split('\n').enumerate().filter(|_| !dialog.has_echo()) {
                    let mark = if n == 0 { mark } else { "  " };
                    view.say_in_dialog(&format!("{mark}{}", crate::shown::block(part)));
                }
                return Ok(Typed::Line(line.take()));
            }
            Some(Key::Escape | Key::Interrupt) => return Ok(Typed::Rejected),
            Some(Key::Edit(edit)) => line.edit(edit),
            Some(Key::Up | Key::CycleMode | Key::EndOfInput | Key::Resized) | None => {}
        }
    }
}
