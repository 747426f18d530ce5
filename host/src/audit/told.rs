//! From what the ledger is told to what is written down.
//!
//! Keys are taken out of a text before it is cut: of one that the cut goes through the beginning would stay.

use super::record::{Actor, By, Change, ChangeAct, Changed, Command, Contact, Contacted, Effect, Ended, Ending, Scope, Touched, What};
use crate::conversation::Call;
use crate::policy::{self, Act, Basis, Because, CommandScope, Denial, Finding, Place, Verdict};
use crate::tools::{self, CommandEnding, Contacts, Decided, Ground, Ruled, Subject};

/// Of a command, an address or a plan that was denied, bytes that are kept: nobody ran the rest.
const DENIED: usize = 4 << 10;
/// Of a name or a problem that a model wrote.
const LONGEST_WORDS: usize = 1 << 10;
/// Of each kind of paths; the others are counted. A record has to stay small enough to be written at once.
const PATHS: usize = 50;
const LONGEST_PATH: usize = 400;

/// Takes keys out of a text.
pub(super) type Clean<'a> = &'a dyn Fn(&str) -> String;

/// An effect was decided on.
pub(super) fn decided(subject: &Subject, decided: &Decided, clean: Clean<'_>) -> What {
    let (decision, by) = match &decided.ruled {
        Ruled::Allowed(ground) => (Verdict::Allow, self::ground(ground)),
        Ruled::Denied(denial) => (Verdict::Deny, self::denial(denial, clean)),
    };
    // What happens is on record as a whole.
    let most = if decision == Verdict::Allow { usize::MAX } else { DENIED };
    let effect = effect(&decided.effect, &|text| cut(&clean(text), most), clean);
    What::Decided { actor: Box::new(actor(subject)), effect, decision, by: Box::new(by), waited_ms: millis(decided.waited) }
}

fn effect(effect: &policy::Effect, whole: Clean<'_>, clean: Clean<'_>) -> Effect {
    match effect {
        policy::Effect::Command { line, directory } => Effect::Command { line: whole(line), directory: directory.as_str().to_owned() },
        policy::Effect::Write { changes, confirm } => Effect::Write {
            changes: changes.iter().take(PATHS).map(|one| change(one, clean)).collect(),
            more: changes.len().saturating_sub(PATHS),
            confirm: *confirm,
        },
        policy::Effect::Fetch { method, host, url } => Effect::Fetch { method: whole(method), host: host.to_string(), url: whole(url) },
        policy::Effect::Confirmed => Effect::Confirmed,
        policy::Effect::Plan { text, then } => Effect::Plan { text: whole(text), then: *then },
    }
}

fn change(change: &policy::Change, clean: Clean<'_>) -> Change {
    let path = |path: &str| cut(&clean(path), LONGEST_PATH);
    let plain = |act| Change { act, path: path(change.path.as_str()), from: None, to: None, before: None, size: None, sha256: None };
    let with = |act, before: Option<u64>, after: &policy::Content| Change {
        before,
        size: Some(after.size),
        sha256: Some(after.digest.clone()),
        ..plain(act)
    };
    match &change.act {
        Act::Create { after } => with(ChangeAct::Create, None, after),
        Act::Modify { before, after } => with(ChangeAct::Modify, Some(*before), after),
        Act::Move { from, after } => Change { from: Some(path(from.as_str())), ..with(ChangeAct::Move, None, after) },
        Act::Delete { before } => Change { before: Some(*before), ..plain(ChangeAct::Delete) },
        Act::CreateDirectory => plain(ChangeAct::CreateDirectory),
        Act::RemoveDirectory => plain(ChangeAct::RemoveDirectory),
        Act::Link { to } => Change { to: Some(path(to)), ..plain(ChangeAct::Link) },
        Act::Unlink => plain(ChangeAct::Unlink),
    }
}

fn denial(denial: &Denial, clean: Clean<'_>) -> By {
    By::Denial {
        code: denial.code.name().to_owned(),
        place: denial.place.as_ref().map(Place::to_string),
        reason: cut(&clean(&denial.reason), LONGEST_WORDS),
    }
}

fn ground(ground: &Ground) -> By {
    match ground {
        Ground::Standing(Basis::Rules(finding)) => because(finding),
        Ground::Standing(Basis::EarlierApproval { scope, asked }) => {
            By::User { user: "earlier".into(), scope: Some(self::scope(scope)), asked: Some(Box::new(because(asked))) }
        }
        Ground::User => By::User { user: "once".into(), scope: None, asked: None },
        Ground::UserForScope(scope) => By::User { user: "scope".into(), scope: scope.as_ref().map(self::scope), asked: None },
    }
}

/// The rule or the mode that allows or asks.
fn because(finding: &Finding) -> By {
    match &finding.because {
        Because::Rule(rule) | Because::Perhaps(rule) => By::Rule { rule: rule.text.clone(), place: rule.place.to_string() },
        Because::NotListed(kind, place, _) => By::NotListed { not_listed: kind.section().to_owned(), place: place.to_string() },
        Because::Listed(listed) => By::Rule { rule: listed.pattern.to_owned(), place: "built-in list".to_owned() },
        Because::Mode(mode) => By::Mode { mode: *mode },
        Because::Reading => By::Reading { reading: Verdict::Allow },
    }
}

fn scope(scope: &policy::Scope) -> Scope {
    match scope {
        policy::Scope::Command { tool, directory, lines } => {
            let (words, open) = match lines {
                CommandScope::BeginsWith(words) => (words, true),
                CommandScope::Exactly(words) => (words, false),
            };
            Scope::Command { tool: tool.clone(), directory: directory.as_str().to_owned(), words: words.clone(), open }
        }
        policy::Scope::Write { tool, path } => Scope::Write { tool: tool.clone(), path: path.as_str().to_owned() },
        policy::Scope::Fetch { tool, method, host } => Scope::Fetch { tool: tool.clone(), method: method.clone(), host: host.to_string() },
    }
}

/// A call that ran is over.
pub(super) fn ended(subject: &Subject, ended: &tools::Ended, clean: Clean<'_>) -> What {
    let tools::Ended { status, failure, decisions, more_denials, commands, .. } = ended;
    let tools::Ended { active, waited, wall, input, output, memory, log, touched, contacts, .. } = ended;
    let commands = commands.iter().map(|ran| Command {
        line_sha256: ran.line_sha256.to_string(),
        level: ran.level,
        ending: ran.ending.map(ending),
        remarks: ran.remarks.clone(),
    });
    What::Ended(Box::new(Ended {
        actor: actor(subject),
        status: *status,
        failure: failure.map(str::to_owned),
        decided: decisions.clone(),
        more_denials: *more_denials,
        commands: commands.collect(),
        active_ms: millis(*active),
        waited_ms: millis(*waited),
        wall_ms: millis(*wall),
        input_bytes: *input,
        output_bytes: *output,
        log_bytes: *log,
        memory_bytes: *memory,
        touched: self::touched(touched, clean),
        contacted: contacted(contacts),
    }))
}

fn ending(ending: CommandEnding) -> Ending {
    match ending {
        CommandEnding::Exited(code) => Ending::Exited(code),
        CommandEnding::Killed(signal) => Ending::Killed(signal),
        CommandEnding::TimedOut => Ending::TimedOut,
    }
}

/// None if there is nothing to tell, as of a tool that can touch nothing.
fn touched(touched: &tools::Touched, clean: Clean<'_>) -> Option<Touched> {
    if *touched == tools::Touched::default() {
        return None;
    }
    let mut more = touched.more;
    let mut list = |places: Vec<&String>| -> Vec<String> {
        more += places.len().saturating_sub(PATHS);
        let path = |place: &String| if place.is_empty() { ".".to_owned() } else { cut(&clean(place), LONGEST_PATH) };
        places.into_iter().take(PATHS).map(path).collect()
    };
    let read = list(touched.read.keys().collect());
    let (written, walked) = (list(touched.written.iter().collect()), list(touched.walked.iter().collect()));
    Some(Touched { read, written, walked, more })
}

fn contacted(contacts: &Contacts) -> Option<Contacted> {
    let request = |contact: &tools::Contact| Contact {
        method: contact.method.clone(),
        host: contact.host.to_string(),
        address: contact.address.map(|address| address.to_string()),
        status: contact.status,
    };
    let contacted = Contacted { requests: contacts.requests.iter().map(request).collect(), more: contacts.more };
    (*contacts != Contacts::default()).then_some(contacted)
}

/// A call that did not run.
pub(super) fn refused(call: &Call, problem: &str, clean: Clean<'_>) -> What {
    let words = |text: &str| cut(&clean(text), LONGEST_WORDS);
    What::Refused {
        call: words(call.id.as_str()),
        tool: words(call.name.trim()),
        problem: words(problem),
        input_bytes: call.arguments.len(),
    }
}

/// Something else is allowed from now on, or something was taken back.
pub(super) fn changed(change: &tools::Change<'_>, clean: Clean<'_>) -> What {
    let owned = |text: &&str| (*text).to_owned();
    let words = |text: &String| cut(&clean(text), LONGEST_WORDS);
    What::Changed(match change {
        tools::Change::Mode(mode) => Changed::Mode { mode: *mode },
        tools::Change::Scope(scope) => Changed::Approved { scope: self::scope(scope) },
        tools::Change::Trust { path, digest } => Changed::Trusted { path: owned(path), sha256: owned(digest) },
        tools::Change::Distrust { path } => Changed::NoLongerTrusted { path: owned(path) },
        tools::Change::PluginAccepted { path, digest, wider } => {
            let wider = wider.iter().take(PATHS).map(words).collect();
            Changed::PluginAccepted { path: owned(path), sha256: digest.to_string(), wider }
        }
        tools::Change::PluginRemoved { name, path } => Changed::PluginRemoved { name: owned(name), path: owned(path) },
        tools::Change::Undo(change) => {
            let (id, tool) = change.map(|(id, tool, _)| (id.to_owned(), tool.to_owned())).unzip();
            let paths = change.map_or(&[][..], |(_, _, paths)| paths);
            let path = |path: &String| cut(&clean(path), LONGEST_PATH);
            Changed::Undo { id, tool, paths: paths.iter().take(PATHS).map(path).collect(), more: paths.len().saturating_sub(PATHS) }
        }
    })
}

fn actor(subject: &Subject) -> Actor {
    let Subject { call, tool, arguments: _, digest, origin, tier, grants } = subject;
    Actor {
        call: call.clone(),
        tool: tool.clone(),
        component: digest.to_string(),
        origin: origin.to_string(),
        tier: tier.name().to_owned(),
        grants: grants.clone(),
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::test_log::{ended, subject, write};
    use super::*;
    use crate::policy::{Code, HostAddress};

    fn clean(text: &str) -> String {
        text.replace("sk-secret-of-many-characters", "[key redacted]")
    }

    #[test]
    fn what_a_call_has_touched_is_on_record_and_what_is_left_out_is_counted() {
        let mut call = ended(&[]);
        let fields = |call: &tools::Ended| super::ended(&subject(), call, &clean).fields();
        assert_eq!((&fields(&call)["touched"], &fields(&call)["contacted"]), (&Value::Null, &Value::Null));
        call.touched.walked.insert(String::new());
        call.touched.written.extend((0..PATHS + 5).map(|n| format!("{n:03}")));
        call.touched.more = 2;
        let host = HostAddress::parse("docs.rs").expect("a host");
        let address = "192.0.2.7:443".parse().ok();
        call.contacts.requests.push(tools::Contact { method: "GET".into(), host, address, status: Some(200) });
        let fields = fields(&call);
        assert_eq!(fields["touched"]["written"].as_array().map(Vec::len), Some(PATHS));
        assert_eq!(fields["touched"]["read"], json!([]));
        assert_eq!(fields["touched"]["walked"], json!(["."]));
        assert_eq!(fields["touched"]["more"], 7);
        let contact = json!({"method": "GET", "host": "docs.rs", "address": "192.0.2.7:443", "status": 200});
        assert_eq!(fields["contacted"], json!({"requests": [contact], "more": 0}));
    }

    #[test]
    fn r114_a_key_that_the_cut_goes_through_is_taken_out_whole() {
        for before in DENIED - 40..DENIED + 5 {
            let line = format!("echo {}sk-secret-of-many-characters", "x".repeat(before - 5));
            let effect = policy::Effect::Command { line, directory: policy::WorkspacePath::parse("", None).expect("a path") };
            let ruled = Ruled::Denied(Denial::fixed(Code::Mode, "not in this mode."));
            let text = format!("{:?}", decided(&subject(), &Decided { effect, ruled, waited: std::time::Duration::ZERO }, &clean));
            assert!(!text.contains("sk-sec"), "{before}: {text}");
        }
        let name = format!("{}sk-secret-of-many-characters", "x".repeat(LONGEST_WORDS - 10));
        let call = Call { id: crate::conversation::CallId::new("c"), name, arguments: String::new() };
        assert!(!format!("{:?}", refused(&call, "no such tool", &clean)).contains("sk-"));
    }

    #[test]
    fn a_write_is_on_record_by_what_it_does_and_never_by_content() {
        let long = "d/".repeat(600) + "a";
        let mut paths = vec![long.clone(), "b".to_owned()];
        paths.extend((0..PATHS).map(|n| format!("c/{n:03}")));
        let decided = Decided { effect: write(&paths), ..super::super::test_log::allowed("") };
        let fields = super::decided(&subject(), &decided, &clean).fields();
        assert_eq!(fields["effect"]["more"], 2);
        let changes = fields["effect"]["changes"].as_array().expect("a list");
        assert_eq!(changes[0], json!({"act": "modify", "path": "b", "before": 1, "size": 2, "sha256": "0".repeat(64)}));
        let text = serde_json::to_string(&fields).expect("it is JSON");
        assert!(!text.contains("the content") && text.len() < 100 << 10, "{} bytes", text.len());
        assert!(changes.iter().all(|change| change["path"].as_str().is_some_and(|path| path.len() < LONGEST_PATH + 30)));
    }
}
