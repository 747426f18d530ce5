//! Uses every part of the SDK.

use std::fmt::Write as _;
use std::time::Duration;

use cofferdam_sdk::commands::{self, Command, ExitStatus};
use cofferdam_sdk::http::{self, Request};
use cofferdam_sdk::workspace::{EntryKind, Walk, WalkOptions};
use cofferdam_sdk::{
    Capability, Content, Hint, Output, Tool, ToolError, View, agents, export_tools, json_schema,
    plans, progress, state,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct ReportInput {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct ReportResult {
    name: String,
    count: u32,
}

struct Report;

impl Tool for Report {
    const NAME: &'static str = "report";
    const TITLE: Option<&'static str> = Some("Report");
    const DESCRIPTION: &'static str = "Returns every kind of content.";
    type Input = ReportInput;

    fn capabilities() -> Vec<Capability> {
        Vec::new()
    }

    fn output_schema() -> Option<String> {
        Some(json_schema::<ReportResult>())
    }

    fn call(input: ReportInput) -> Result<Output, ToolError> {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = vec![row([&input.name, "a \"quoted\", cell\nof two lines"]), row(["", ""])];
        let content = vec![
            Content::text("hello"),
            Content::json(&())?,
            Content::bytes("image/png", b"\x89PNG\r\n\x1a\n"),
            Content::bytes("audio/wav", [0, 255]),
            Content::text("copy").with_uri("file:///a.txt"),
        ];
        Ok(Output::content(content)
            .with_structured(&ReportResult { name: input.name.clone(), count: 1 })?
            .with_view(View::table(["name", "note"], rows))
            .with_annotation("x-kind", &"report")?
            .truncated())
    }
}

struct CountCalls;

impl Tool for CountCalls {
    const NAME: &'static str = "count_calls";
    const DESCRIPTION: &'static str = "Counts its calls.";
    type Input = Nothing;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::KeepState]
    }

    fn call(_: Nothing) -> Result<Output, ToolError> {
        let calls: u32 = state::load("calls")?;
        state::save("calls", &(calls + 1))?;
        state::set("raw", [0, 255])?;
        state::delete("old")?;
        if state::keys()? != ["calls", "raw"] || state::get("raw")? != Some(vec![0, 255]) {
            return Err(ToolError::failed(format!("the keys are {:?}", state::keys()?)));
        }
        Ok(Output::text((calls + 1).to_string()))
    }
}

struct ListFiles;

impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    const DESCRIPTION: &'static str = "Lists and reads text files.";
    type Input = Nothing;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(_: Nothing) -> Result<Output, ToolError> {
        progress::report("walking");
        for _ in 0..20 {
            let mut walk = Walk::open(&WalkOptions::default())?;
            walk.entries().next().transpose()?;
        }
        let mut text = String::new();
        let options = WalkOptions { globs: vec!["*.txt".into()], ..WalkOptions::default() };
        for entry in Walk::open(&options)?.entries() {
            let entry = entry?;
            if entry.kind == EntryKind::File {
                let dated = if entry.modified.is_some() { "dated" } else { "undated" };
                let _ = writeln!(text, "{} {} {dated}", entry.path, entry.size);
            }
        }
        let mut walk = Walk::open(&options)?;
        let mut files = walk.files(1 << 20);
        while let Some(mut file) = files.next_file()? {
            let path = file.path().to_owned();
            let content = std::io::read_to_string(&mut file)?;
            let _ = writeln!(text, "{path}={content}");
        }
        drop(files);
        text.extend(walk.problems());
        Ok(Output::text(text))
    }
}

struct RunCommand;

impl Tool for RunCommand {
    const NAME: &'static str = "run_command";
    const DESCRIPTION: &'static str = "Runs a command.";
    type Input = Nothing;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::RunCommands]
    }

    fn hints() -> Vec<Hint> {
        vec![Hint::Exclusive, Hint::Confirm]
    }

    fn call(_: Nothing) -> Result<Output, ToolError> {
        let command = Command::new("echo out; echo err >&2; exit 3");
        let output = commands::run(&Command { timeout: Duration::from_secs(5), ..command })?;
        let code = if let ExitStatus::Exited(code) = output.status { code } else { -1 };
        let timed = Duration::ZERO < output.elapsed && output.elapsed < Duration::from_secs(5);
        let (stdout, stderr) = (output.stdout.trim(), output.stderr.trim());
        Ok(Output::text(format!("{code} {stdout} {stderr} {timed}")))
    }
}

struct AskAgent;

impl Tool for AskAgent {
    const NAME: &'static str = "ask_agent";
    const DESCRIPTION: &'static str = "Asks a sub-agent.";
    type Input = Nothing;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::Delegate]
    }

    fn call(_: Nothing) -> Result<Output, ToolError> {
        let answer = agents::delegate("How many files are there?")?;
        Ok(Output::text(answer.text))
    }
}

struct MakePlan;

impl Tool for MakePlan {
    const NAME: &'static str = "make_plan";
    const DESCRIPTION: &'static str = "Presents a plan.";
    type Input = Nothing;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::PresentPlan]
    }

    fn call(_: Nothing) -> Result<Output, ToolError> {
        Ok(Output::text(plans::present("1. Nothing")?))
    }
}

#[derive(Deserialize, JsonSchema)]
struct GetPageInput {
    url: String,
}

struct GetPage;

impl Tool for GetPage {
    const NAME: &'static str = "get_page";
    const DESCRIPTION: &'static str = "Reads a web page.";
    type Input = GetPageInput;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::Fetch(vec!["example.com".into(), "GET,POST 127.0.0.1:8753".into()])]
    }

    fn call(input: GetPageInput) -> Result<Output, ToolError> {
        let request = Request::get(input.url).header("accept", "text/plain");
        let mut response = http::send(&request)?;
        let (body, _) = response.read_up_to(1024)?;
        let media_type = response.header("content-type").unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        Ok(Output::text(format!("{} {media_type} {body}", response.status)))
    }
}

#[derive(Deserialize, JsonSchema)]
struct FailInput {
    error: String,
}

struct Fail;

impl Tool for Fail {
    const NAME: &'static str = "fail";
    const DESCRIPTION: &'static str = "Fails.";
    type Input = FailInput;

    fn capabilities() -> Vec<Capability> {
        Vec::new()
    }

    fn call(input: FailInput) -> Result<Output, ToolError> {
        Err(match input.error.as_str() {
            "not-found" => ToolError::not_found("nothing is here"),
            "timed-out" => ToolError::timed_out("it took too long"),
            "failed" => ToolError::failed("it failed"),
            _ => ToolError::invalid_input("/error", "there is no such error"),
        })
    }
}

export_tools!(Report, CountCalls, ListFiles, RunCommand, AskAgent, MakePlan, GetPage, Fail);
