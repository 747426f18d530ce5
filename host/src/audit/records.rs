//! The records, as they are written. A reader of an older version meets new keys and new kinds, and no old one with another
//! meaning.

use serde_json::{Map, Value, json};

use crate::conversation::Call;
use crate::policy::{Because, Effect, Finding, Place, Verdict};
use crate::tools::{Decided, Ended, Ground, Origin, Ruled, Subject};

/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// Of a command that was denied, bytes that are kept: nobody ran the rest.
const DENIED_LINE: usize = 4 << 10;
/// Of a name or a problem that a model wrote.
const LONGEST_WORDS: usize = 1 << 10;

pub(super) type Fields = Map<String, Value>;

/// An effect was decided on.
pub(super) fn decided(subject: &Subject, decided: &Decided) -> Fields {
    let mut fields = acting(subject);
    let (word, by) = match &decided.ruled {
        Ruled::Allowed(ground) => ("allow", self::ground(ground)),
        Ruled::Denied(denial) => (
            "deny",
            json!({"code": denial.code, "place": denial.place.as_ref().map(Place::to_string), "reason": cut(&denial.reason, LONGEST_WORDS)}),
        ),
    };
    let mut effect = json!(decided.effect);
    if let (Ruled::Denied(_), Effect::Command { line, .. }) = (&decided.ruled, &decided.effect) {
        effect["line"] = cut(line, DENIED_LINE).into();
    }
    fields.extend(object(json!({"effect": effect, "decision": word, "by": by, "waited_ms": millis(decided.waited)})));
    fields
}

fn ground(ground: &Ground) -> Value {
    match ground {
        Ground::Standing(finding) => standing(finding),
        Ground::User => json!({"user": "once"}),
        Ground::UserForScope(scope) => json!({"user": "scope", "scope": scope}),
    }
}

/// What a rule or the mode allows; what it would ask was approved before.
fn standing(finding: &Finding) -> Value {
    let because = match &finding.because {
        Because::Rule(rule) | Because::Perhaps(rule) => json!({"rule": rule.text, "place": rule.place.to_string()}),
        Because::NotListed(kind, place) => json!({"not_listed": kind, "place": place.to_string()}),
        Because::Mode(mode) => json!({"mode": mode}),
        Because::Reading => json!({"reading": "allowed"}),
    };
    match finding.verdict {
        Verdict::Allow => because,
        Verdict::Ask | Verdict::Deny => json!({"user": "earlier", "asked": because}),
    }
}

/// A call that ran is over.
pub(super) fn ended(subject: &Subject, ended: &Ended) -> Fields {
    let Ended { status, failure, decisions, more_denials, commands, active, waited, wall, input, output, memory, log } = ended;
    let mut fields = acting(subject);
    fields.extend(object(json!({
        "status": status, "failure": failure, "decided": decisions, "more_denials": more_denials, "commands": commands,
        "active_ms": millis(*active), "waited_ms": millis(*waited), "wall_ms": millis(*wall),
        "input_bytes": input, "output_bytes": output, "log_bytes": log, "memory_bytes": memory,
    })));
    fields
}

/// A call that did not run.
pub(super) fn refused(call: &Call, problem: &str) -> Fields {
    let tool = cut(call.name.trim(), LONGEST_WORDS);
    object(json!({"call": call.id, "tool": tool, "problem": cut(problem, LONGEST_WORDS), "input_bytes": call.arguments.len()}))
}

fn acting(subject: &Subject) -> Fields {
    let Subject { call, tool, arguments: _, digest, origin, tier, grants } = subject;
    let origin = match origin {
        Origin::BuiltIn(name) => format!("built-in {name}"),
        Origin::File(path) => path.display().to_string(),
    };
    object(json!({"call": call, "tool": tool, "component": digest, "origin": origin, "tier": tier, "grants": grants}))
}

pub(super) fn object(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Fields::new(),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.len() <= most {
        true => text.to_owned(),
        false => format!("{}… ({} bytes)", &text[..text.floor_char_boundary(most)], text.len()),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Every text in a value, passed through `redact`: before it becomes JSON, since there a secret may look different.
pub(super) fn redacted(fields: &mut Fields, redact: &dyn Fn(&str) -> String) {
    fields.values_mut().for_each(|value| each_text(value, redact));
}

fn each_text(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| each_text(value, change)),
        Value::Object(fields) => fields.values_mut().for_each(|value| each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Now, to the millisecond, in UTC.
pub(super) fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}
