//! Rules, and the actions that are held against them.

use std::borrow::Cow;

use super::{Pattern, Rule, ToolId};
use crate::policy::pattern::{CommandLine, Match, MatchBudget, flatten, unknown};
use crate::policy::{Deed, Verdict};

/// The text of an action that is read in parts.
pub(in crate::policy) struct ActionText<'a>(Cow<'a, str>);

/// An action of a tool, read once for all rules, with the work that they may take.
pub(in crate::policy) struct RuleInput<'a> {
    tool: ToolId<'a>,
    act: &'a Deed<'a>,
    line: Option<CommandLine<'a>>,
    budget: MatchBudget,
}

impl<'a> ActionText<'a> {
    pub(in crate::policy) fn of(act: &Deed<'a>) -> Self {
        Self(if let Deed::Command(line) = act { flatten(line) } else { Cow::Borrowed("") })
    }
}

impl<'a> RuleInput<'a> {
    pub(in crate::policy) fn new(tool: ToolId<'a>, act: &'a Deed<'a>, text: &'a ActionText<'a>) -> Self {
        let line = if let Deed::Command(line) = act { Some(CommandLine::parse(line, &text.0)) } else { None };
        Self { tool, act, line, budget: MatchBudget::for_decision() }
    }

    /// The work that was done so far, in steps.
    #[cfg(test)]
    pub(in crate::policy) fn steps(&self) -> u64 {
        self.budget.used()
    }
}

impl Rule {
    /// How far an act of a tool falls under this rule.
    pub fn matches(&self, tool: ToolId<'_>, act: &Deed<'_>) -> Match {
        let text = ActionText::of(act);
        self.matches_input(&RuleInput::new(tool, act, &text))
    }

    /// Whether it is about actions of this kind.
    fn is_about(&self, act: &Deed<'_>) -> bool {
        matches!(
            (&self.pattern, act),
            (Pattern::Command(_), Deed::Command(_)) | (Pattern::Read(_), Deed::Read(_)) | (Pattern::Write(_), Deed::Write(_))
        )
    }

    /// The same of an action that is held against many rules.
    pub(in crate::policy) fn matches_input(&self, input: &RuleInput<'_>) -> Match {
        let RuleInput { tool, act, line, budget } = input;
        if self.tool.as_ref().is_some_and(|subject| !subject.means(*tool)) {
            return Match::No;
        }
        let verdict = self.written.verdict;
        if budget.is_spent() && matches!(self.pattern, Pattern::Command(_) | Pattern::Read(_) | Pattern::Write(_)) {
            return if self.is_about(act) { unknown(verdict) } else { Match::No };
        }
        match (&self.pattern, act) {
            (Pattern::Command(pattern), Deed::Command(_)) => {
                line.as_ref().map_or_else(|| unknown(verdict), |line| pattern.matches_within(line, verdict, budget))
            }
            (Pattern::Read(pattern), Deed::Read(path)) | (Pattern::Write(pattern), Deed::Write(Some(path))) => {
                pattern.matches_within(path, verdict, budget)
            }
            (Pattern::Write(_), Deed::Write(None)) if verdict == Verdict::Allow => Match::No,
            (Pattern::Write(_), Deed::Write(None)) => Match::Perhaps,
            (Pattern::Fetch { host, methods }, Deed::Fetch { host: at, method }) => {
                // Some servers take `delete` for `DELETE`: that is no way around a rule.
                let is = |covered: &String| match verdict {
                    Verdict::Allow => covered == method,
                    Verdict::Ask | Verdict::Deny => covered.eq_ignore_ascii_case(method),
                };
                let by_method = methods.as_ref().is_none_or(|methods| methods.iter().any(is));
                if by_method { host.matches(at, verdict) } else { Match::No }
            }
            // Whoever asks about a tool means what it does to the world, and reading does nothing to it; a tool that is
            // denied is denied its reading too.
            (Pattern::Tool, Deed::Read(_)) => {
                if verdict == Verdict::Deny {
                    Match::Yes
                } else {
                    Match::No
                }
            }
            (Pattern::Tool, Deed::Command(_) | Deed::Write(_) | Deed::Fetch { .. } | Deed::Use) => Match::Yes,
            (Pattern::Command(_) | Pattern::Read(_) | Pattern::Write(_) | Pattern::Fetch { .. }, _) => Match::No,
        }
    }
}
