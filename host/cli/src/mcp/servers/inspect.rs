//! `cofferdam mcp inspect`: starts a server or connects to it, and compares its tools with those
//! that the user accepted.

use std::process::ExitCode;

use serde_json::json;

use super::description::{
    describe_server, describe_unusable, find_unusable, sandbox_level, to_json,
};
use super::{find_server, inspect_settings, load_context};
use crate::args::CommonArgs;
use crate::error::CommandResult;
use crate::json_text::json_page;
use crate::print::print_line;
use crate::{context, exit};
use cofferdam::plugins::AcceptedServer;
use cofferdam::terminal_escape::escape_line;

pub(in crate::mcp) fn run(common: &CommonArgs, name: &str, as_json: bool) -> CommandResult {
    let context = load_context(common)?;
    let settings = find_server(&context, name)?.clone();
    let lock = context::lock_file(common, &context.user_dirs).read()?;
    let inspection = inspect_settings(common, &context, &settings)?;
    let now = AcceptedServer::new(&settings, inspection.tools);
    let changes = lock.find_server(name).map(|before| {
        let mut changes = before.unaccepted_settings(&settings);
        changes.extend(before.tool_changes(&now.tools));
        changes
    });
    let unusable = find_unusable(&context, &settings, &now)?;
    let is_accepted = changes.as_ref().is_some_and(Vec::is_empty);
    let code = if is_accepted { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) };
    if as_json {
        let mut value = to_json(&settings, &now);
        value["server"] = json!(inspection.server);
        value["protocol"] = json!(inspection.protocol);
        value["accepted"] = json!(is_accepted);
        value["changes"] = json!(changes);
        let unusable = unusable.iter().map(|tool| (tool.name.clone(), json!(tool.reason)));
        value["unusable"] = json!(unusable.collect::<serde_json::Map<_, _>>());
        value["sandbox"] = sandbox_level(&context, &settings);
        print_line(&json_page(&value));
        return Ok(code);
    }
    let page = describe_server(&context, &settings, &now) + &describe_unusable(&unusable);
    print_line(page.trim_end());
    print_line(&format!(
        "  The server calls itself {} and speaks version {} of the protocol.",
        inspection.server, inspection.protocol
    ));
    print_line(&match changes {
        None => format!("  Not accepted yet: `cofferdam mcp add {name}` accepts it."),
        Some(changes) if changes.is_empty() => "  Accepted, without changes since.".to_owned(),
        Some(changes) => {
            let lines: Vec<String> = changes
                .iter()
                .map(|change| format!("    {}\n", escape_line(change, 400)))
                .collect();
            format!(
                "  Changes since you accepted it:\n{}  `cofferdam mcp add {name}` accepts them.",
                lines.concat()
            )
        }
    });
    Ok(code)
}
