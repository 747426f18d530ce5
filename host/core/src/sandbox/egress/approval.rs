//! The approval of hosts that no list contains, while the command runs.
//!
//! Each host is asked about once for each command, however many connections wait for it. The answer
//! counts for the rest of the command, even if the program gave up meanwhile.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::policy::{Denial, DenialCode, Effect, HostAddress};
use crate::sandbox::gate::{ConnectionJudge, Gate, GateRuling};
use cofferdam_confine::process::CommandTimeLimit;

/// The number of hosts that the user is asked about for one command. A hostile program could
/// otherwise ask without end.
const MAX_QUESTIONS: usize = 20;

/// What deciding about the connections of a command takes.
pub(in crate::sandbox) struct ConnectionRules {
    pub(in crate::sandbox) judge: ConnectionJudge,
    pub(in crate::sandbox) gate: Gate,
    /// The line of the command, which questions show.
    pub(in crate::sandbox) line: String,
    /// The time limit of the command, which pauses while a question is open.
    pub(in crate::sandbox) limit: CommandTimeLimit,
}

/// The answer to a question; `None` until there is one.
type HostAnswer = Option<Result<(), Denial>>;

/// The decisions about the hosts of one command.
pub(super) struct HostApprovals {
    rules: ConnectionRules,
    questions: Mutex<HashMap<HostAddress, watch::Receiver<HostAnswer>>>,
    /// Closes the questions when the command ends.
    ended: CancellationToken,
}

impl HostApprovals {
    pub(super) fn new(rules: ConnectionRules, ended: CancellationToken) -> Self {
        Self { rules, questions: Mutex::default(), ended }
    }

    /// Returns the judge of hosts.
    pub(super) fn judge(&self) -> &ConnectionJudge {
        &self.rules.judge
    }

    /// Asks the user about a host, unless the user has answered already.
    pub(super) async fn ask(&self, host: &HostAddress) -> Result<(), Denial> {
        let mut answer = self.open_question(host)?;
        match answer.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone().unwrap_or_else(|| Err(ended_denial())),
            Err(_) => Err(ended_denial()),
        }
    }

    /// Returns the question about a host, which is opened the first time. It stays open if the
    /// connection closes, so that the next one finds the answer.
    fn open_question(&self, host: &HostAddress) -> Result<watch::Receiver<HostAnswer>, Denial> {
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(question) = questions.get(host) {
            return Ok(question.clone());
        }
        if questions.len() >= MAX_QUESTIONS {
            return Err(Denial::new(
                DenialCode::TooMany,
                format!("one command can ask about at most {MAX_QUESTIONS} hosts."),
                "Add the hosts to `allow` under [commands.network].",
            ));
        }
        let (answer, question) = watch::channel(None);
        questions.insert(host.clone(), question.clone());
        let effect = Effect::Connect { host: host.clone(), line: self.rules.line.clone() };
        let asked = (self.rules.gate)(effect.clone());
        let (pause, ended) = (self.rules.limit.pause(), self.ended.clone());
        tokio::spawn(async move {
            let Some(ruling) = ended.run_until_cancelled(asked).await else { return };
            drop(pause);
            let _ = answer.send(Some(match ruling {
                GateRuling::Permitted(permit) if permit.effect() == &effect => {
                    let _used = permit.into_effect();
                    Ok(())
                }
                GateRuling::Permitted(_) => Err(Denial::without_remedy(
                    DenialCode::BadRequest,
                    "internal error: the approval does not match this connection.",
                )),
                GateRuling::Denied(denial) => Err(denial),
            }));
        });
        Ok(question)
    }
}

fn ended_denial() -> Denial {
    Denial::without_remedy(DenialCode::Cancelled, "the command ended.")
}
