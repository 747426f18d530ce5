//! The tier of a tool, computed from what it can do.

use crate::agent::events::Tier;
use crate::policy::Capability;
use crate::sandbox::DeclaredTool;

/// What a tool can do is what it was granted, and it is never granted more than it asks for; an interface that its
/// component imports for another of its tools answers this one with a refusal. So its own asking settles its tier, and
/// its hints can only make it stricter: a tool that lies about itself ends up alone and asked, never the other way round.
pub fn tier(tool: &DeclaredTool) -> Tier {
    if tool.exclusive || tool.confirm || tool.asks.iter().any(can_change_something) {
        Tier::Write
    } else if tool.asks.contains(&Capability::Delegate) {
        Tier::Research
    } else {
        Tier::ReadOnly
    }
}

fn can_change_something(capability: &Capability) -> bool {
    match capability {
        Capability::ReadFiles | Capability::ReadEnvironment(_) | Capability::KeepState | Capability::Delegate => false,
        // A request can change something at the other end, and nobody here can know. A plan that is accepted changes the
        // mode, so that what stands behind it has to wait for it.
        Capability::WriteFiles | Capability::RunCommands | Capability::Fetch(_) | Capability::PresentPlan => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(asks: &[Capability], exclusive: bool) -> DeclaredTool {
        DeclaredTool {
            name: "t".into(),
            description: String::new(),
            input_schema: serde_json::json!({"type": "object"}),
            asks: asks.to_vec(),
            exclusive,
            confirm: false,
        }
    }

    #[test]
    fn r014_the_tier_follows_from_power_and_can_only_be_raised() {
        let table = [
            (tool(&[], false), Tier::ReadOnly),
            (tool(&[Capability::ReadFiles], false), Tier::ReadOnly),
            (tool(&[Capability::ReadFiles], true), Tier::Write),
            (tool(&[Capability::Delegate], false), Tier::Research),
            (tool(&[Capability::Delegate, Capability::ReadFiles], false), Tier::Research),
            (tool(&[Capability::Delegate, Capability::RunCommands], false), Tier::Write),
            (tool(&[Capability::KeepState], false), Tier::ReadOnly),
            (tool(&[Capability::PresentPlan], false), Tier::Write),
            (tool(&[Capability::WriteFiles], false), Tier::Write),
            (tool(&[Capability::RunCommands], false), Tier::Write),
            (tool(&[Capability::Fetch(vec!["example.com".into()])], false), Tier::Write),
        ];
        for (declared, expected) in table {
            assert_eq!(tier(&declared), expected, "{:?}", declared.asks);
        }
    }
}
