//! Hosts that no list contains, and that the user is asked about while the command runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam::config::allow_host_always;
use cofferdam::policy::{
    ApprovalQuestion, CommandNetwork, CommandRules, Effect, NetworkRules, SandboxLevel, Verdict,
};
use cofferdam::tools::{ApprovalAnswer, Approver, UserRuleFile};
use cofferdam_tests::guests::{ScriptedApprover, TestHostBuilder};

use super::listed_hosts::{request, serve};
use crate::{host_builder, rules_for_level, run_line};

fn rules() -> CommandRules {
    let rules = NetworkRules::default().with_unlisted(Verdict::Ask);
    CommandRules { network: CommandNetwork::Listed(rules), ..rules_for_level(SandboxLevel::Full) }
}

fn builder(answers: &[ApprovalAnswer]) -> (TestHostBuilder, Arc<ScriptedApprover>) {
    // The commands themselves are approved as well.
    let answers = answers.iter().cloned();
    let approver = Arc::new(ScriptedApprover::with_answers(answers));
    (host_builder(rules()).with_approver(&approver), approver)
}

/// Returns the hosts of the questions about connections.
fn asked_hosts(approver: &ScriptedApprover) -> Vec<String> {
    let questions = approver.questions().into_iter();
    questions
        .filter_map(|question| match question.effect {
            Effect::Connect { host, line } => {
                assert!(line.contains("base64"), "the question shows the command: {line}");
                Some(host.to_string())
            }
            _ => None,
        })
        .collect()
}

#[test]
fn an_approved_host_is_reached_and_a_rejected_one_is_not_while_the_command_goes_on() {
    let (good, bad) = (serve("good-answer"), serve("bad-answer"));
    let no = ApprovalAnswer::No { guidance: None };
    let (builder, approver) = builder(&[ApprovalAnswer::Yes, ApprovalAnswer::Yes, no]);
    let test_host = builder.build();
    let (good_url, bad_url) =
        (format!("http://127.0.0.1:{good}/"), format!("http://127.0.0.1:{bad}/"));
    let line = format!(
        "{}\n{}\n{}\n{}\necho went-on > file",
        request(&good_url),
        request(&bad_url),
        request(&good_url),
        request(&bad_url)
    );
    let said = run_line(&test_host, &line);
    assert_eq!(said.matches("good-answer").count(), 2, "{said}");
    assert!(!said.contains("bad-answer"), "{said}");
    let notice = format!(
        "the connection to 127.0.0.1:{bad} was refused: the user rejected the connection to \
            127.0.0.1:{bad}."
    );
    assert!(said.contains(&notice), "{said}");
    assert!(test_host.workspace_dir().join("file").exists(), "{said}");
    // Each host was asked about once.
    let expected = [format!("127.0.0.1:{good}"), format!("127.0.0.1:{bad}")];
    assert_eq!(asked_hosts(&approver), expected);
}

#[test]
fn an_approval_ends_with_its_command_or_with_the_session() {
    let port = serve("answer");
    let url = format!("http://127.0.0.1:{port}/");
    let yes = ApprovalAnswer::Yes;
    let scope = ApprovalAnswer::YesForScope;
    // The answers to commands and connections in turn.
    let answers = [&yes, &yes, &yes, &scope, &yes].map(Clone::clone);
    let (builder, approver) = builder(&answers);
    let test_host = builder.build();
    for call in 0..3 {
        let said = run_line(&test_host, &format!("{}; : {call}", request(&url)));
        assert!(said.contains("answer"), "call {call}: {said}");
    }
    assert_eq!(asked_hosts(&approver).len(), 2, "the third command used the approval");
}

#[test]
fn always_adds_the_host_to_the_policy_file_of_the_user() {
    let port = serve("answer");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("policy.toml");
    std::fs::write(&file, "# mine\n[read]\ndeny = [\"x\"]\n").expect("it is written");
    let target = file.clone();
    let rule_file = UserRuleFile::new(file.display().to_string(), move |rule| {
        allow_host_always(&target, &rule.host).expect("it is added");
    });
    let (builder, approver) = builder(&[ApprovalAnswer::Yes, ApprovalAnswer::YesAlways]);
    let test_host = builder.with_rule_file(rule_file).build();
    let said = run_line(&test_host, &request(&format!("http://127.0.0.1:{port}/")));
    assert!(said.contains("answer"), "{said}");
    let expected = format!(
        "# mine\n[read]\ndeny = [\"x\"]\n\n[commands.network]\nallow = [\"127.0.0.1:{port}\"]\n"
    );
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), expected);
    // The question showed the rule.
    let questions = approver.questions();
    let shown = questions[1].lasting.as_ref().expect("it is offered").to_string();
    let rule = format!("`allow = [\"127.0.0.1:{port}\"]` under [commands.network] in ");
    assert_eq!(shown, format!("{rule}{}", file.display()));
}

/// Approves commands at once, and connections after this time.
struct SlowApprover(Duration);

impl Approver for SlowApprover {
    fn ask_pages<'a>(
        &'a self,
        question: &'a ApprovalQuestion,
    ) -> std::pin::Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        Box::pin(async move {
            if let Effect::Connect { .. } = question.effect {
                tokio::time::sleep(self.0).await;
            }
            ApprovalAnswer::Yes
        })
    }
}

#[test]
fn r049_a_question_does_not_use_up_the_time_of_the_command() {
    let port = serve("late-answer");
    let mut rules = rules();
    rules.limits.seconds = Some(3);
    let approver = Arc::new(SlowApprover(Duration::from_secs(5)));
    let test_host = host_builder(rules).with_approver(&approver).build();
    let said = run_line(&test_host, &request(&format!("http://127.0.0.1:{port}/")));
    assert!(said.contains("late-answer"), "{said}");
}

#[test]
fn a_command_that_ends_closes_its_question() {
    let port = serve("answer");
    let approver = Arc::new(SlowApprover(Duration::from_secs(60)));
    let test_host = host_builder(rules()).with_approver(&approver).build();
    let started = Instant::now();
    let url = format!("http://127.0.0.1:{port}/");
    let said = run_line(
        &test_host,
        &format!(
            "timeout 2 {}; echo went-on > file",
            request(&url).replace("PATH=/usr/bin:/bin ", "")
        ),
    );
    assert!(started.elapsed() < Duration::from_secs(30), "{said}");
    assert!(test_host.workspace_dir().join("file").exists(), "{said}");
    assert!(!said.contains("answer\n"), "{said}");
}

#[test]
fn r041_without_a_user_an_unlisted_host_is_refused_with_what_would_allow_it() {
    let port = serve("answer");
    let test_host = host_builder(rules()).build();
    let said = run_line(&test_host, &request(&format!("http://127.0.0.1:{port}/")));
    let remedy = format!(
        "there is no terminal to ask for it: no list of [commands.network] contains it, and \
            `unlisted` at the settings of the host:1:1 decides. The user can run cofferdam in a \
            terminal, or allow it in their policy file: `allow = [\"127.0.0.1:{port}\"]` under \
            [commands.network]."
    );
    assert!(said.contains(&remedy) && !said.contains("answer\n"), "{said}");
}
