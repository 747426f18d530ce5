//! The records, as they are written. A reader of an older version meets new keys and new kinds, and no old one with another
//! meaning.

use serde_json::{Map, Value, json};

use crate::conversation::Call;
use crate::policy::{Because, Effect, Finding, Place, Verdict};
use crate::tools::{Contacts, Decided, Ended, Ground, Origin, Ruled, Subject, Touched};

/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// Of a command that was denied, bytes that are kept: nobody ran the rest.
const DENIED_LINE: usize = 4 << 10;
/// Of a name or a problem that a model wrote.
const LONGEST_WORDS: usize = 1 << 10;
/// Of each kind of touched paths; the others are counted. A record has to stay small enough to be written at once.
const PATHS: usize = 50;
const LONGEST_PATH: usize = 400;

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
        Because::NotListed(kind, place, _) => json!({"not_listed": kind, "place": place.to_string()}),
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
    let Ended { status, failure, decisions, more_denials, commands, active, waited, wall, input, output, memory, log, touched, contacts } =
        ended;
    let mut fields = acting(subject);
    fields.extend(object(json!({
        "status": status, "failure": failure, "decided": decisions, "more_denials": more_denials, "commands": commands,
        "active_ms": millis(*active), "waited_ms": millis(*waited), "wall_ms": millis(*wall),
        "input_bytes": input, "output_bytes": output, "log_bytes": log, "memory_bytes": memory,
        "touched": self::touched(touched), "contacted": (*contacts != Contacts::default()).then_some(contacts),
    })));
    fields
}

/// Null if there is nothing to tell, as of a tool that can touch nothing.
fn touched(touched: &Touched) -> Value {
    if *touched == Touched::default() {
        return Value::Null;
    }
    let mut more = touched.more;
    let mut list = |places: Vec<&String>| {
        more += places.len().saturating_sub(PATHS);
        places
            .into_iter()
            .take(PATHS)
            .map(|place| cut(if place.is_empty() { "." } else { place.as_str() }, LONGEST_PATH))
            .collect::<Vec<_>>()
    };
    let (read, written, walked) =
        (list(touched.read.keys().collect()), list(touched.written.iter().collect()), list(touched.walked.iter().collect()));
    json!({"read": read, "written": written, "walked": walked, "more": more})
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

#[cfg(test)]
mod tests {
    use super::super::test_log::{ended, subject};
    use super::*;
    use crate::policy::HostAddress;
    use crate::tools::Contact;

    #[test]
    fn what_a_call_has_touched_is_on_record_and_what_is_left_out_is_counted() {
        let mut call = ended(&[]);
        assert_eq!(
            (&super::ended(&subject(), &call)["touched"], &super::ended(&subject(), &call)["contacted"]),
            (&Value::Null, &Value::Null)
        );
        call.touched.walked.insert(String::new());
        call.touched.written.extend((0..PATHS + 5).map(|n| format!("{n:03}")));
        call.touched.more = 2;
        let host = HostAddress::parse("docs.rs").expect("a host");
        let address = "192.0.2.7:443".parse().ok();
        call.contacts.requests.push(Contact { method: "GET".into(), host, address, status: Some(200) });
        let fields = super::ended(&subject(), &call);
        assert_eq!(fields["touched"]["written"].as_array().map(Vec::len), Some(PATHS));
        assert_eq!(fields["touched"]["read"], json!([]));
        assert_eq!(fields["touched"]["walked"], json!(["."]));
        assert_eq!(fields["touched"]["more"], 7);
        let contact = json!({"method": "GET", "host": "docs.rs", "address": "192.0.2.7:443", "status": 200});
        assert_eq!(fields["contacted"], json!({"requests": [contact], "more": 0}));
    }
}
