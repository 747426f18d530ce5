//! Plan mode: a plan is shown, and the user's yes is the way out.

use cofferdam_tests::terminal::TestTerminal;
use cofferdam_tests::wire::{ProviderServer, both_providers, call_reply, text_reply};
use serde_json::json;

use super::new_home;

fn plan_reply() -> cofferdam_tests::wire::ScriptedReply {
    call_reply("present_plan", json!({"plan": "1. Touch it.\n2. Look."}))
}

fn start_plan_mode(
    home: &cofferdam_tests::program::TestHome,
    server: &ProviderServer,
) -> TestTerminal {
    TestTerminal::start(&home.model_command(server, &["--mode", "plan"]), None)
}

#[test]
fn r126_a_yes_leaves_plan_mode_and_what_follows_is_asked() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            plan_reply(),
            call_reply("bash", json!({"command": "touch done"})),
            text_reply("Done."),
        ]);
        let mut terminal = start_plan_mode(&home, &server);
        terminal.wait_for_output("present_plan presents this plan:");
        terminal.wait_for_output("1. Touch it.");
        terminal.wait_for_output("plan mode ends, and mode `ask` applies");
        terminal.wait_for_output("\n> ");
        terminal.type_keys("2\n");
        terminal.wait_for_output("Type 1 or 3, and Enter.");
        terminal.type_keys("1\n");
        terminal.wait_for_output("wants to run this command");
        terminal.wait_for_output("\n> ");
        assert!(!home.has_file("done"));
        terminal.type_keys("1\n");
        assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.raw_output());
        assert!(home.has_file("done"));
        assert!(server.requests()[0].system_prompt().contains("Plan mode is on"));
        let [accepted] = server.requests()[1].tool_results().try_into().expect("one result");
        assert!(
            !accepted.is_error && accepted.text.contains("the mode is now `ask`"),
            "{accepted:?}"
        );
    }
}

#[test]
fn r126_a_no_brings_back_the_users_words_and_plan_mode_goes_on() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            plan_reply(),
            call_reply("bash", json!({"command": "touch done"})),
            text_reply("Then not."),
        ]);
        let mut terminal = start_plan_mode(&home, &server);
        terminal.wait_for_output("\n> ");
        terminal.type_keys("3\nLook first.\n\n");
        assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.raw_output());
        let [rejected] = server.requests()[1].tool_results().try_into().expect("one result");
        assert!(
            rejected.is_error
                && rejected.text.contains("Look first.")
                && rejected.text.contains("Plan mode stays on"),
            "{rejected:?}"
        );
        let [denied] = server.last_request().tool_results().try_into().expect("one result");
        assert!(denied.is_error && denied.text.contains("denied (mode)"), "{denied:?}");
        assert!(!home.has_file("done"));
    }
}

#[test]
fn r126_elsewhere_and_without_a_user_it_is_an_error_result() {
    for provider in both_providers() {
        for (mode, says_why) in [
            ("ask", "only accepted in plan mode"),
            ("auto", "only accepted in plan mode"),
            ("plan", "Write the plan as your answer"),
        ] {
            let server = provider.serve([plan_reply(), text_reply("As you like.")]);
            new_home().run_task(&server, &["--mode", mode]).expect_answer("As you like.");
            let [denied] = server.last_request().tool_results().try_into().expect("one result");
            assert!(denied.is_error && denied.text.contains(says_why), "{mode}: {denied:?}");
            assert_eq!(
                server.last_request().system_prompt().contains("Plan mode is on"),
                mode == "plan"
            );
        }
    }
}
