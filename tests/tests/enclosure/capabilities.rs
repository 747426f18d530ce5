//! Imports that nobody asked for, and tools that borrow from their siblings.

use cofferdam::policy::{Capability, FileGrant, Tier};
use cofferdam::tools::PluginProvenance;
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHost, TestHostBuilder, nested};

use crate::assert_contains;

fn command_guest() -> TestGuest {
    TestGuest::from_file("command")
        .with_replacement("{{directory}}", "")
        .with_replacement("{{timeout}}", "10")
}

#[test]
fn r014_an_import_that_no_tool_asks_for_is_not_offered() {
    for asks in [&[][..], &[Capability::ReadFiles]] {
        let test_host = TestHost::with_guest(&command_guest().with_requested(asks));
        assert_contains(
            test_host.refusal_reason(),
            "it imports cofferdam:plugin/commands, but none of its tools requests the capability",
        );
        test_host.assert_healthy();
    }
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("walk-files").with_requested(&[Capability::RunCommands]),
    );
    assert_contains(test_host.refusal_reason(), "it imports cofferdam:plugin/workspace");
}

#[test]
fn r014_an_import_of_a_nested_component_counts() {
    let component = nested::wrap_component(&command_guest().component(), "");
    let test_host = TestHostBuilder::default()
        .with_component(PluginProvenance::File("nested.wasm".into()), component)
        .build();
    assert_contains(
        test_host.refusal_reason(),
        "it imports cofferdam:plugin/commands, but none of its tools requests the capability",
    );
    test_host.assert_healthy();
    // The same, honest.
    let component = nested::wrap_component(
        &command_guest().with_requested(&[Capability::RunCommands]).component(),
        "",
    );
    let test_host = TestHostBuilder::default()
        .with_component(PluginProvenance::File("nested.wasm".into()), component)
        .build();
    assert_eq!(
        test_host.call_ok("command", r#"{"line":"echo nested"}"#),
        "ending 0 code 0: nested\n\n"
    );
}

#[test]
fn r014_a_tool_holds_nothing_of_its_sibling() {
    let able =
        GuestTool::new("able").with_requested(&[Capability::RunCommands, Capability::ReadFiles]);
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("borrow").with_tools([able, GuestTool::new("harmless")]),
    );
    assert_eq!(test_host.tier("able"), Tier::Write);
    assert_eq!(test_host.tier("harmless"), Tier::ReadOnly);
    let text = test_host.call_ok("able", "{}");
    assert_eq!(text, "directories 1\nwalk ok\ncommand ending 0 code 0: borrowed\n\n");
    let text = test_host.call_ok("harmless", "{}");
    assert_contains(&text, "directories 0\n");
    assert_contains(&text, "walk denied not-granted: this tool has no permission to read files.");
    assert_contains(
        &text,
        "command denied not-granted: this tool has no permission to run \
        commands.",
    );
    test_host.assert_healthy();
}

#[test]
fn r014_the_tier_is_computed_and_can_only_be_raised() {
    let asks = |asks: &[Capability]| GuestTool::new("other").with_requested(asks);
    let table = [
        (asks(&[]), Tier::ReadOnly, FileGrant::None),
        (asks(&[Capability::ReadFiles]), Tier::ReadOnly, FileGrant::Read),
        (asks(&[Capability::WriteFiles]), Tier::Write, FileGrant::ReadWrite),
        (asks(&[Capability::RunCommands]), Tier::Write, FileGrant::None),
        (asks(&[Capability::Fetch(vec!["example.com".into()])]), Tier::Write, FileGrant::None),
        (asks(&[Capability::KeepState]), Tier::ReadOnly, FileGrant::None),
        (asks(&[]).with_exclusive(), Tier::Write, FileGrant::None),
    ];
    for (tool, tier, files) in table {
        let test_host =
            TestHost::with_guest(&TestGuest::from_file("good").with_tools([tool.clone()]));
        assert_eq!(test_host.tier("other"), tier, "{:?}", tool.requested);
        assert_eq!(
            test_host.catalog().find("other").expect("it is there").grants.files,
            files,
            "{:?}",
            tool.requested
        );
    }
}

#[test]
fn r016_what_nobody_can_know_counts_as_a_write_and_an_import_nobody_knows_as_none_at_all() {
    // What a request does at its other end, and what a command line does, nobody here can know.
    let harmless = [Capability::ReadFiles, Capability::KeepState, Capability::Delegate];
    for unknown in [Capability::Fetch(vec!["example.com".into()]), Capability::RunCommands] {
        let asks: Vec<Capability> = harmless.iter().cloned().chain([unknown]).collect();
        let test_host = TestHost::with_guest(
            &TestGuest::from_file("good")
                .with_tools([GuestTool::new("other").with_requested(&asks)]),
        );
        assert_eq!(test_host.tier("other"), Tier::Write, "{asks:?}");
    }
    // An import that this host has never heard of could do anything, and so there is no tool.
    let test_host = TestHost::with_guest(&TestGuest::from_file("unknown-import"));
    assert!(test_host.catalog().find("unknown_import").is_none());
    assert_eq!(test_host.refusal_reasons().len(), 1);
    test_host.assert_healthy();
}

#[test]
fn a_plugin_with_an_unknown_capability_or_parameter_is_not_offered() {
    let table = [
        ("read-environment", vec!["HOME"], "`other` requests the unknown capability"),
        ("read-files", vec!["src"], "requests `read-files` with the unknown parameter `src`"),
        ("fetch", vec!["no host!"], "`other` requests an invalid host"),
        ("", vec![], "`other` requests the unknown capability ``; this version knows `read-files`"),
    ];
    for (name, parameters, expected) in table {
        let mut tool = GuestTool::new("other").with_requested(&[Capability::ReadFiles]);
        let parameters = parameters.into_iter().map(str::to_owned).collect();
        tool.named = vec![(name.to_owned(), parameters)];
        let test_host = TestHost::with_guest(&TestGuest::from_file("good").with_tools([tool]));
        assert_contains(test_host.refusal_reason(), expected);
        test_host.assert_healthy();
    }
}

#[test]
fn r014_an_unknown_hint_only_makes_a_tool_stricter() {
    let mut tool = GuestTool::new("other");
    tool.hints = vec![("careful".to_owned(), Vec::new())];
    let test_host = TestHost::with_guest(&TestGuest::from_file("good").with_tools([tool]));
    assert_eq!(test_host.tier("other"), Tier::Write);
    assert!(test_host.catalog().find("other").expect("it is there").confirm);
}

#[test]
fn variables_of_the_host_are_not_there() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("look-around"));
    assert_contains(&test_host.call_ok("look_around", "{}"), "variables 0\n");
}
