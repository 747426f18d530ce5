"""What a Cofferdam plugin in Python is made of: a function a tool, marked with `@tool`.

    from cofferdam import READ_FILES, tool

    @tool("shout", "Returns a text in capitals.", {"text": {"type": "string"}})
    def shout(input):
        return input["text"].upper()

A tool returns text, or anything that becomes JSON, or an `Output` to say more. What it raises becomes an error that the
model reads: `NotFound`, `InvalidInput`, `Failed`, or any `OSError`.
"""

import json
import os
import traceback
from dataclasses import dataclass, field

from componentize_py_types import Err
from wit_world.exports import tools as wit

READ_FILES = wit.Capability_ReadFiles()
WRITE_FILES = wit.Capability_WriteFiles()
RUN_COMMANDS = wit.Capability_RunCommands()

# A property that is a path in the workspace. The host refuses paths that leave it, and shows and orders calls by them.
WORKSPACE_PATH = {"type": "string", "format": "workspace-path"}


class NotFound(Exception):
    """What the call is about does not exist."""


class Failed(Exception):
    """The tool could not do what was asked; say what the model can do about it."""


class InvalidInput(Exception):
    """The input fits the schema and still makes no sense."""

    def __init__(self, pointer, message):
        super().__init__(message)
        self.pointer = pointer


@dataclass
class Output:
    """What a tool answers, when text alone does not say it."""

    content: str
    view: object = None
    truncated: bool = False


@dataclass
class _Tool:
    declared: wit.Tool
    call: object


_TOOLS = {}


def tool(name, description, properties, required=None, capabilities=(), confirm=False, exclusive=False):
    """Makes a function a tool. `properties` is the `properties` of its JSON Schema; all are required unless `required` says else."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else list(required),
        "additionalProperties": False,
    }
    hints = wit.Hints(0)
    if confirm:
        hints |= wit.Hints.CONFIRM
    if exclusive:
        hints |= wit.Hints.EXCLUSIVE

    def register(function):
        declared = wit.Tool(name, description, json.dumps(schema), list(capabilities), hints)
        _TOOLS[name] = _Tool(declared, function)
        return function

    return register


_NO_FILES = "this tool may not read files; it would have to ask for `read-files`"


def _may_read_files():
    """Without the permission there is no workspace, and every path looks as if nothing were there."""
    try:
        os.stat(".")
    except OSError:
        return False
    return True


class Tools:
    """The export `cofferdam:plugin/tools`. A plugin's main module imports this name; the toolchain looks for it there."""

    def list_tools(self):
        return [tool.declared for tool in _TOOLS.values()]

    def call_tool(self, name, input):
        tool = _TOOLS.get(name)
        if tool is None:
            raise Err(wit.ToolError_NotFound(f"this plugin has no tool {name!r}"))
        try:
            return _output(tool.call(json.loads(input)))
        except NotFound as error:
            raise Err(wit.ToolError_NotFound(str(error)))
        except InvalidInput as error:
            raise Err(wit.ToolError_InvalidInput(wit.InputProblem(error.pointer, str(error))))
        except Failed as error:
            raise Err(wit.ToolError_Failed(str(error)))
        except FileNotFoundError as error:
            if not _may_read_files():
                raise Err(wit.ToolError_Failed(_NO_FILES))
            raise Err(wit.ToolError_NotFound(f"{error.filename} does not exist"))
        except OSError as error:
            if not _may_read_files():
                raise Err(wit.ToolError_Failed(_NO_FILES))
            raise Err(wit.ToolError_Failed(f"{error.filename}: {error.strerror}"))
        except Exception as error:
            traceback.print_exc()
            raise Err(wit.ToolError_Failed(f"{type(error).__name__}: {error}"))


def _output(answer):
    if not isinstance(answer, Output):
        answer = Output(answer)
    content = answer.content
    piece = wit.Content_Text(content) if isinstance(content, str) else wit.Content_Json(json.dumps(content))
    view = wit.View_Text(answer.view) if isinstance(answer.view, str) else answer.view
    return wit.Output([piece], view, answer.truncated)
