"""Drives `cofferdam mcp serve` with the official Python SDK (`pip install mcp`).

    drive.py PROGRAM

Everything happens in temporary directories. Ends with exit code 0 if the server behaves as the SDK demands.
"""

import asyncio
import os
import pathlib
import sys
import tempfile

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

PROGRAM = os.path.abspath(sys.argv[1])


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def field(value, snake, camel):
    """A field of the SDK, whose newer versions spell names in snake case."""
    return getattr(value, snake) if hasattr(value, snake) else getattr(value, camel)


async def approve(context, params):
    check("+two" in params.message, "the question has the diff")
    return types.ElicitResult(action="accept", content={"decision": "once"})


async def drive(home):
    workspace = home / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    (workspace / ".env").write_text("KEY=1\n")
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    server = StdioServerParameters(
        command=PROGRAM, args=["mcp", "serve", "-C", str(workspace)], env=environment
    )
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, elicitation_callback=approve) as session:
            begun = await session.initialize()
            check(field(begun, "server_info", "serverInfo").name == "cofferdam", "a session begins")
            await session.send_ping()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            hints = tools["read_file"].annotations
            check(field(hints, "read_only_hint", "readOnlyHint") is True, "hints are read")
            result = await session.call_tool("read_file", {"path": "a.txt"})
            check(not field(result, "is_error", "isError"), "a tool is called")
            check("one" in result.content[0].text, "its result is read")
            result = await session.call_tool("read_file", {"path": ".env"})
            check(field(result, "is_error", "isError"), "a hidden file is denied")
            result = await session.call_tool("write_file", {"path": "b.txt", "content": "two\n"})
            check(not field(result, "is_error", "isError"), "an approved change is made")
            check((workspace / "b.txt").read_text() == "two\n", "the file is there")
            resources = (await session.list_resources()).resources
            check({resource.name for resource in resources} == {"a.txt", "b.txt"}, "files are listed")
            contents = (await session.read_resource(resources[0].uri)).contents
            check(contents[0].text == "one\n", "a file is read")
            calls = [session.call_tool("read_file", {"path": "a.txt"}) for _ in range(100)]
            results = await asyncio.gather(*calls)
            check(all("one" in result.content[0].text for result in results), "100 calls at once")


def main():
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(asyncio.wait_for(drive(pathlib.Path(home)), 120))


main()
