//! Matching of actions against rules.

use std::borrow::Cow;

use super::{PolicyRule, RulePattern, ToolId};
use crate::pattern::{CommandLine, MatchBudget, PatternMatch, flatten, unknown};
use crate::{Action, Verdict};

/// The flattened command line of an action, empty for other actions. See [`flatten`].
pub(crate) struct ActionText<'a>(Cow<'a, str>);

/// An action of a tool, parsed once for all rules, with the work budget of the decision.
pub(crate) struct RuleMatchInput<'a> {
    tool: ToolId<'a>,
    act: &'a Action<'a>,
    line: Option<CommandLine<'a>>,
    budget: MatchBudget,
}

impl<'a> ActionText<'a> {
    pub(crate) fn of(act: &Action<'a>) -> Self {
        Self(match act {
            Action::Command(line) | Action::Input(line) => flatten(line),
            Action::Read(_)
            | Action::Write(_)
            | Action::Fetch { .. }
            | Action::Connect(_)
            | Action::Use => Cow::Borrowed(""),
        })
    }
}

impl<'a> RuleMatchInput<'a> {
    pub(crate) fn new(tool: ToolId<'a>, act: &'a Action<'a>, text: &'a ActionText<'a>) -> Self {
        let line = match act {
            Action::Command(line) | Action::Input(line) => Some(CommandLine::parse(line, &text.0)),
            Action::Read(_)
            | Action::Write(_)
            | Action::Fetch { .. }
            | Action::Connect(_)
            | Action::Use => None,
        };
        Self { tool, act, line, budget: MatchBudget::for_decision() }
    }

    /// Returns the work done so far, in steps.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.budget.used()
    }
}

impl PolicyRule {
    /// Returns how far an action of a tool matches this rule.
    pub fn matches(&self, tool: ToolId<'_>, act: &Action<'_>) -> PatternMatch {
        let text = ActionText::of(act);
        self.matches_input(&RuleMatchInput::new(tool, act, &text))
    }

    /// Returns whether the rule is about commands, reads or writes and the action has the same
    /// kind.
    fn is_about(&self, act: &Action<'_>) -> bool {
        matches!(
            (&self.pattern, act),
            (RulePattern::Command(_), Action::Command(_) | Action::Input(_))
                | (RulePattern::Read(_), Action::Read(_))
                | (RulePattern::Write(_), Action::Write(_))
        )
    }

    /// Returns how far a parsed action matches this rule. The budget is shared by all rules.
    pub(crate) fn matches_input(&self, input: &RuleMatchInput<'_>) -> PatternMatch {
        let RuleMatchInput { tool, act, line, budget } = input;
        if self.tool.as_ref().is_some_and(|subject| !subject.matches(*tool)) {
            return PatternMatch::No;
        }
        let verdict = self.source_rule.verdict;
        if budget.is_spent()
            && matches!(
                self.pattern,
                RulePattern::Command(_) | RulePattern::Read(_) | RulePattern::Write(_)
            )
        {
            return if self.is_about(act) { unknown(verdict) } else { PatternMatch::No };
        }
        match (&self.pattern, act) {
            // What a program makes of its input is unknown, so no rule allows it.
            (RulePattern::Command(_), Action::Input(_)) if verdict == Verdict::Allow => {
                PatternMatch::No
            }
            (RulePattern::Command(pattern), Action::Command(_) | Action::Input(_)) => {
                let matched = line.as_ref().map_or_else(
                    || unknown(verdict),
                    |line| pattern.matches_within(line, verdict, budget),
                );
                // The words mean what earlier input made of them: an alias, a function, a variable.
                let is_input = matches!(act, Action::Input(_));
                if is_input { matched.max(PatternMatch::Maybe) } else { matched }
            }
            (RulePattern::Read(pattern), Action::Read(path))
            | (RulePattern::Write(pattern), Action::Write(Some(path))) => {
                pattern.matches_within(path, verdict, budget)
            }
            (RulePattern::Write(_), Action::Write(None)) if verdict == Verdict::Allow => {
                PatternMatch::No
            }
            (RulePattern::Write(_), Action::Write(None)) => PatternMatch::Maybe,
            (RulePattern::Fetch { host, methods }, Action::Fetch { host: at, method }) => {
                // Some servers accept `delete` for `DELETE`, so the case of letters must not bypass
                // a rule.
                let is = |covered: &String| match verdict {
                    Verdict::Allow => covered == method,
                    Verdict::Ask | Verdict::Deny => covered.eq_ignore_ascii_case(method),
                };
                let by_method = methods.as_ref().is_none_or(|methods| methods.iter().any(is));
                if by_method { host.matches(at, verdict) } else { PatternMatch::No }
            }
            (RulePattern::Connect(pattern), Action::Connect(host)) => {
                pattern.matches(host, verdict)
            }
            // `use = "ask"` concerns effects, and reading has none. A denied tool cannot read
            // either.
            (RulePattern::Tool, Action::Read(_)) => {
                if verdict == Verdict::Deny {
                    PatternMatch::Yes
                } else {
                    PatternMatch::No
                }
            }
            (
                RulePattern::Tool,
                Action::Command(_)
                | Action::Input(_)
                | Action::Write(_)
                | Action::Fetch { .. }
                | Action::Use,
            ) => PatternMatch::Yes,
            // The rule applied to the command that connects.
            (RulePattern::Tool, Action::Connect(_)) => {
                if verdict == Verdict::Deny {
                    PatternMatch::Yes
                } else {
                    PatternMatch::No
                }
            }
            (
                RulePattern::Command(_)
                | RulePattern::Read(_)
                | RulePattern::Write(_)
                | RulePattern::Fetch { .. }
                | RulePattern::Connect(_),
                _,
            ) => PatternMatch::No,
        }
    }
}
