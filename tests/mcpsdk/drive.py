"""Drives `cofferdam mcp serve` with the official Python SDK (`pip install mcp`), over stdio and over HTTP.

    drive.py PROGRAM

Everything happens in temporary directories. Ends with exit code 0 if the server behaves as the SDK demands.
"""

import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

PROGRAM = os.path.abspath(sys.argv[1])
TOKEN = "token-for-the-python-sdk"


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


async def drive(read, write, workspace):
    """The conversation of one client, whatever the transport."""
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


def make_home(directory):
    home = pathlib.Path(directory)
    workspace = home / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    (workspace / ".env").write_text("KEY=1\n")
    return workspace, {"HOME": str(home), "PATH": os.environ["PATH"]}


async def drive_stdio(workspace, environment):
    server = StdioServerParameters(
        command=PROGRAM, args=["mcp", "serve", "-C", str(workspace)], env=environment
    )
    async with stdio_client(server) as (read, write):
        await drive(read, write, workspace)


async def drive_http(workspace, environment):
    args = ["mcp", "serve", "-C", str(workspace), "--http", "127.0.0.1:0", "--token-env", "TOKEN"]
    server = subprocess.Popen(
        [PROGRAM, *args], env={**environment, "TOKEN": TOKEN}, stderr=subprocess.PIPE, text=True
    )
    try:
        line = next(line for line in server.stderr if line.startswith("MCP server: "))
        url = line.split()[2]
        threading.Thread(target=server.stderr.read, daemon=True).start()
        try:
            async with streamable_http_client(url) as streams:
                await drive(streams[0], streams[1], workspace)
            sys.exit("failed: a client without a token is refused")
        except Exception:
            print("ok: a client without a token is refused")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with create_mcp_http_client(headers=headers) as client:
            async with streamable_http_client(url, http_client=client) as streams:
                await drive(streams[0], streams[1], workspace)
    finally:
        server.terminate()
        check(server.wait(10) == 0, "the server ends")


def main():
    for drive_one in (drive_stdio, drive_http):
        with tempfile.TemporaryDirectory() as home:
            workspace, environment = make_home(home)
            asyncio.run(asyncio.wait_for(drive_one(workspace, environment), 120))
        print(f"ok: {drive_one.__name__}")


main()
