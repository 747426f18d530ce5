//! Rules, and the actions that are held against them.

use std::borrow::Cow;

use super::{PolicyRule, RulePattern, ToolId};
use crate::policy::pattern::{CommandLine, MatchBudget, PatternMatch, flatten, unknown};
use crate::policy::{Action, Verdict};

/// The text of an action that is read in parts.
pub(in crate::policy) struct ActionText<'a>(Cow<'a, str>);

/// An action of a tool, read once for all rules, with the work that they may take.
pub(in crate::policy) struct RuleMatchInput<'a> {
    tool: ToolId<'a>,
    act: &'a Action<'a>,
    line: Option<CommandLine<'a>>,
    budget: MatchBudget,
}

impl<'a> ActionText<'a> {
    pub(in crate::policy) fn of(act: &Action<'a>) -> Self {
        Self(if let Action::Command(line) = act { flatten(line) } else { Cow::Borrowed("") })
    }
}

impl<'a> RuleMatchInput<'a> {
    pub(in crate::policy) fn new(
        tool: ToolId<'a>,
        act: &'a Action<'a>,
        text: &'a ActionText<'a>,
    ) -> Self {
        let line = if let Action::Command(line) = act {
            Some(CommandLine::parse(line, &text.0))
        } else {
            None
        };
        Self { tool, act, line, budget: MatchBudget::for_decision() }
    }

    /// The work that was done so far, in steps.
    #[cfg(test)]
    pub(in crate::policy) fn steps(&self) -> u64 {
        self.budget.used()
    }
}

impl PolicyRule {
    /// How far an act of a tool falls under this rule.
    pub fn matches(&self, tool: ToolId<'_>, act: &Action<'_>) -> PatternMatch {
        let text = ActionText::of(act);
        self.matches_input(&RuleMatchInput::new(tool, act, &text))
    }

    /// Whether it is about actions of this kind.
    fn is_about(&self, act: &Action<'_>) -> bool {
        matches!(
            (&self.pattern, act),
            (RulePattern::Command(_), Action::Command(_))
                | (RulePattern::Read(_), Action::Read(_))
                | (RulePattern::Write(_), Action::Write(_))
        )
    }

    /// The same of an action that is held against many rules.
    pub(in crate::policy) fn matches_input(&self, input: &RuleMatchInput<'_>) -> PatternMatch {
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
            (RulePattern::Command(pattern), Action::Command(_)) => line.as_ref().map_or_else(
                || unknown(verdict),
                |line| pattern.matches_within(line, verdict, budget),
            ),
            (RulePattern::Read(pattern), Action::Read(path))
            | (RulePattern::Write(pattern), Action::Write(Some(path))) => {
                pattern.matches_within(path, verdict, budget)
            }
            (RulePattern::Write(_), Action::Write(None)) if verdict == Verdict::Allow => {
                PatternMatch::No
            }
            (RulePattern::Write(_), Action::Write(None)) => PatternMatch::Maybe,
            (RulePattern::Fetch { host, methods }, Action::Fetch { host: at, method }) => {
                // Some servers take `delete` for `DELETE`: that is no way around a rule.
                let is = |covered: &String| match verdict {
                    Verdict::Allow => covered == method,
                    Verdict::Ask | Verdict::Deny => covered.eq_ignore_ascii_case(method),
                };
                let by_method = methods.as_ref().is_none_or(|methods| methods.iter().any(is));
                if by_method { host.matches(at, verdict) } else { PatternMatch::No }
            }
            // Whoever asks about a tool means what it does to the world, and reading does nothing
            // to it; a tool that is denied is denied its reading too.
            (RulePattern::Tool, Action::Read(_)) => {
                if verdict == Verdict::Deny {
                    PatternMatch::Yes
                } else {
                    PatternMatch::No
                }
            }
            (
                RulePattern::Tool,
                Action::Command(_) | Action::Write(_) | Action::Fetch { .. } | Action::Use,
            ) => PatternMatch::Yes,
            (
                RulePattern::Command(_)
                | RulePattern::Read(_)
                | RulePattern::Write(_)
                | RulePattern::Fetch { .. },
                _,
            ) => PatternMatch::No,
        }
    }
}
