//! Plan mode: a plan is shown, and the user's yes is the way out.

use cofferdam_tests::terminal::Terminal;
use cofferdam_tests::wire::{Server, both, calls, says};
use serde_json::json;

use super::home;

fn presents() -> cofferdam_tests::wire::Reply {
    calls("present_plan", json!({"plan": "1. Touch it.\n2. Look."}))
}

fn begin(home: &cofferdam_tests::program::Home, server: &Server) -> Terminal {
    Terminal::start(&home.task(server, &["--mode", "plan"]), None)
}

#[test]
fn r126_a_yes_leaves_plan_mode_and_what_follows_is_asked() {
    for provider in both() {
        let home = home();
        let server = provider.serve([presents(), calls("bash", json!({"command": "touch done"})), says("Done.")]);
        let mut terminal = begin(&home, &server);
        terminal.wait_for("present_plan presents this plan:");
        terminal.wait_for("1. Touch it.");
        terminal.wait_for("plan mode ends, and the mode is `ask` from then on");
        terminal.wait_for("\n> ");
        terminal.types("2\n");
        terminal.wait_for("Type 1 or 3, and Enter.");
        terminal.types("1\n");
        terminal.wait_for("wants to run this command");
        terminal.wait_for("\n> ");
        assert!(!home.has("done"));
        terminal.types("1\n");
        assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
        assert!(home.has("done"));
        assert!(server.requests()[0].system().contains("Plan mode is on"));
        let [accepted] = server.requests()[1].results().try_into().expect("one result");
        assert!(!accepted.is_error && accepted.text.contains("the mode is now `ask`"), "{accepted:?}");
    }
}

#[test]
fn r126_a_no_brings_back_the_users_words_and_plan_mode_goes_on() {
    for provider in both() {
        let home = home();
        let server = provider.serve([presents(), calls("bash", json!({"command": "touch done"})), says("Then not.")]);
        let mut terminal = begin(&home, &server);
        terminal.wait_for("\n> ");
        terminal.types("3\nLook first.\n\n");
        assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
        let [rejected] = server.requests()[1].results().try_into().expect("one result");
        assert!(rejected.is_error && rejected.text.contains("Look first.") && rejected.text.contains("Plan mode goes on"), "{rejected:?}");
        let [denied] = server.last_request().results().try_into().expect("one result");
        assert!(denied.is_error && denied.text.contains("denied (mode)"), "{denied:?}");
        assert!(!home.has("done"));
    }
}

#[test]
fn r126_elsewhere_and_without_a_user_it_is_an_error_result() {
    for provider in both() {
        for (mode, says_why) in [("ask", "not in plan mode"), ("auto", "not in plan mode"), ("plan", "Give the plan as your answer")] {
            let server = provider.serve([presents(), says("As you like.")]);
            home().ask(&server, &["--mode", mode]).answered("As you like.");
            let [denied] = server.last_request().results().try_into().expect("one result");
            assert!(denied.is_error && denied.text.contains(says_why), "{mode}: {denied:?}");
            assert_eq!(server.last_request().system().contains("Plan mode is on"), mode == "plan");
        }
    }
}
