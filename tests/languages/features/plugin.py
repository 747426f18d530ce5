"""Uses every part of the SDK."""

from datetime import timedelta

from cofferdam import (
    CONFIRM,
    DELEGATE,
    EXCLUSIVE,
    KEEP_STATE,
    PRESENT_PLAN,
    READ_FILES,
    RUN_COMMANDS,
    Content,
    Failed,
    InvalidInput,
    NotFound,
    Output,
    TimedOut,
    Tools,
    View,
    agents,
    commands,
    fetch,
    http,
    plans,
    progress,
    state,
    tool,
    workspace,
)

TEXT = {"type": "string"}


@tool(
    "report",
    "Returns every kind of content.",
    {"name": TEXT},
    title="Report",
    output_schema={
        "type": "object",
        "properties": {"name": TEXT, "count": {"type": "integer"}},
        "required": ["name", "count"],
    },
    annotations={"x-kind": "report"},
)
def report(input):
    return Output(
        [
            "hello",
            Content.json(None),
            Content.image(b"\x89PNG\r\n\x1a\n"),
            Content.audio(b"\x00\xff"),
            Content.resource("file:///a.txt", "copy"),
        ],
        structured={"name": input["name"], "count": 1},
        view=View.table(
            ["name", "note"], [[input["name"], 'a "quoted", cell\nof two lines'], ["", ""]]
        ),
        truncated=True,
    )


@tool("count_calls", "Counts its calls.", capabilities=[KEEP_STATE])
def count_calls(input):
    calls = int(state.get_text("calls") or "0") + 1
    state.set_text("calls", str(calls))
    state.set("raw", b"\x00\xff")
    state.delete("old")
    if state.keys() != ["calls", "raw"] or state.get("raw") != b"\x00\xff":
        raise Failed(f"the keys are {state.keys()}")
    return str(calls)


@tool("list_files", "Lists and reads text files.", capabilities=[READ_FILES])
def list_files(input):
    progress.report("walking")
    for _ in range(20):
        with workspace.Walk() as walk:
            next(walk.entries(), None)
    with workspace.Walk(globs=["*.txt"]) as walk:
        entries = [entry for entry in walk.entries() if entry.kind == "file"]
    lines = [f"{e.path} {e.size} {'dated' if e.modified else 'undated'}" for e in entries]
    with workspace.Walk(globs=["*.txt"]) as walk:
        lines += [f"{file.path}={file.text}" for file in walk.files()] + walk.problems()
    return "\n".join(lines) + "\n"


@tool("run_command", "Runs a command.", capabilities=[RUN_COMMANDS], hints=[EXCLUSIVE, CONFIRM])
def run_command(input):
    output = commands.run("echo out; echo err >&2; exit 3", timeout=timedelta(seconds=5))
    timed = timedelta() < output.elapsed < timedelta(seconds=5)
    return f"{output.exit_code} {output.stdout.strip()} {output.stderr.strip()} {timed}".lower()


@tool("ask_agent", "Asks a sub-agent.", capabilities=[DELEGATE])
def ask_agent(input):
    return agents.delegate("How many files are there?").text


@tool("make_plan", "Presents a plan.", capabilities=[PRESENT_PLAN])
def make_plan(input):
    return plans.present("1. Nothing")


@tool(
    "get_page",
    "Reads a web page.",
    {"url": TEXT},
    capabilities=[fetch("example.com", "GET,POST 127.0.0.1:8753")],
)
def get_page(input):
    response = http.send("GET", input["url"], headers={"accept": "text/plain"}, max_bytes=1024)
    return f"{response.status} {response.header('content-type')} {response.text}"


@tool("fail", "Fails.", {"error": TEXT})
def fail(input):
    match input["error"]:
        case "not-found":
            raise NotFound("nothing is here")
        case "timed-out":
            raise TimedOut("it took too long")
        case "failed":
            raise Failed("it failed")
    raise InvalidInput("/error", "there is no such error")
