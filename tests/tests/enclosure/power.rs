//! Imports that nobody asked for, and tools that borrow from their siblings.

use cofferdam::agent::events::Tier;
use cofferdam::policy::{Capability, FileGrant};
use cofferdam::tools::Origin;
use cofferdam_tests::guests::{Guest, House, Plan, Tool, nested};

use crate::assert_says;

fn command() -> Guest {
    Guest::named("command").with("{{directory}}", "").with("{{timeout}}", "10")
}

#[test]
fn r014_an_import_that_no_tool_asks_for_is_not_offered() {
    for asks in [&[][..], &[Capability::ReadFiles]] {
        let house = House::with(&command().asking(asks));
        assert_says(house.refusal(), "it imports cofferdam:plugin/commands without any of its tools asking for that");
        house.assert_is_fine();
    }
    let house = House::with(&Guest::named("walk-files").asking(&[Capability::RunCommands]));
    assert_says(house.refusal(), "it imports cofferdam:plugin/workspace");
}

#[test]
fn r014_an_import_of_a_nested_component_counts() {
    let component = nested::around(&command().component(), "");
    let house = Plan::default().component(Origin::File("nested.wasm".into()), component).build();
    assert_says(house.refusal(), "it imports cofferdam:plugin/commands without any of its tools asking for that");
    house.assert_is_fine();
    // The same, honest.
    let component = nested::around(&command().asking(&[Capability::RunCommands]).component(), "");
    let house = Plan::default().component(Origin::File("nested.wasm".into()), component).build();
    assert_eq!(house.answers("command", r#"{"line":"echo nested"}"#), "ending 0 code 0: nested\n\n");
}

#[test]
fn r014_a_tool_holds_nothing_of_its_sibling() {
    let able = Tool::named("able").asking(&[Capability::RunCommands, Capability::ReadFiles]);
    let house = House::with(&Guest::named("borrow").tools([able, Tool::named("harmless")]));
    assert_eq!(house.tier("able"), Tier::Write);
    assert_eq!(house.tier("harmless"), Tier::ReadOnly);
    let text = house.answers("able", "{}");
    assert_eq!(text, "directories 1\nwalk ok\ncommand ending 0 code 0: borrowed\n\n");
    let text = house.answers("harmless", "{}");
    assert_says(&text, "directories 0\n");
    assert_says(&text, "walk denied not-granted: this tool may not look at files.");
    assert_says(&text, "command denied not-granted: this tool may not run commands.");
    house.assert_is_fine();
}

#[test]
fn r014_the_tier_is_computed_and_can_only_be_raised() {
    let asks = |asks: &[Capability]| Tool::named("other").asking(asks);
    let table = [
        (asks(&[]), Tier::ReadOnly, FileGrant::None),
        (asks(&[Capability::ReadFiles]), Tier::ReadOnly, FileGrant::Read),
        (asks(&[Capability::WriteFiles]), Tier::Write, FileGrant::ReadWrite),
        (asks(&[Capability::RunCommands]), Tier::Write, FileGrant::None),
        (asks(&[Capability::Fetch(vec!["example.com".into()])]), Tier::Write, FileGrant::None),
        (asks(&[Capability::ReadEnvironment(vec!["HOME".into()]), Capability::KeepState]), Tier::ReadOnly, FileGrant::None),
        (asks(&[]).exclusive(), Tier::Write, FileGrant::None),
    ];
    for (tool, tier, files) in table {
        let house = House::with(&Guest::named("good").tools([tool.clone()]));
        assert_eq!(house.tier("other"), tier, "{:?}", tool.asks);
        assert_eq!(house.catalog().find("other").expect("it is there").grants.files, files, "{:?}", tool.asks);
    }
}

#[test]
fn what_this_host_cannot_lend_is_not_there() {
    let asks = [Capability::ReadEnvironment(vec!["PATH".into()])];
    let house = House::with(&Guest::named("look-around").asking(&asks));
    assert_eq!(house.catalog().find("look_around").expect("it is there").not_lent, asks);
    assert_says(&house.answers("look_around", "{}"), "variables 0\n");
}
