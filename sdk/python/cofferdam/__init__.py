"""Write Cofferdam plugins in Python. Each tool is a function with the decorator `@tool`.

    from cofferdam import Tools, tool

    @tool("shout", "Converts a text to uppercase.", {"text": {"type": "string"}})
    def shout(input):
        return input["text"].upper()

A tool returns text, a value that becomes JSON, a `Content`, or an `Output`. It raises `NotFound`,
`InvalidInput`, `Denied`, `TimedOut`, `Failed` or any `OSError`; the model reads the message.

The modules `cofferdam.workspace`, `state`, `commands`, `agents`, `plans`, `progress` and `http`
call the host. Each needs a line in `wit/world.wit`, such as
`import cofferdam:plugin/state@0.2.0;`.
"""

import csv
import io
import json
import os
import traceback
from dataclasses import dataclass, field

from componentize_py_types import Err
from wit_world.exports import tools as wit

from .errors import Denied, Failed, InvalidInput, NotFound, TimedOut, ToolError

# The toolchain renames `types` if the world imports another interface of this name.
_types = getattr(wit, "types", None) or wit.cofferdam_plugin_types

# --- Capabilities and hints

READ_FILES = wit.Capability("read-files", [])
WRITE_FILES = wit.Capability("write-files", [])
RUN_COMMANDS = wit.Capability("run-commands", [])
DELEGATE = wit.Capability("delegate", [])
KEEP_STATE = wit.Capability("keep-state", [])
PRESENT_PLAN = wit.Capability("present-plan", [])


def fetch(*patterns):
    """The capability to send HTTP requests, such as `fetch("api.example.com", "GET docs.rs")`."""
    return wit.Capability("fetch", list(patterns))


# Never run the tool in parallel with another one.
EXCLUSIVE = wit.Hint("exclusive", [])
# Ask the user before every call.
CONFIRM = wit.Hint("confirm", [])

# --- Input

# The schema of a property that is a path in the workspace. The host denies paths outside it.
WORKSPACE_PATH = {"type": "string", "format": "workspace-path"}

# --- Output


@dataclass
class Content:
    """A content item of a result. The body is a `str` for text, and otherwise `bytes`."""

    media_type: str
    body: object
    # The URI of an embedded resource.
    uri: str | None = None
    # Names and JSON values.
    annotations: dict = field(default_factory=dict)

    @staticmethod
    def text(text):
        return Content("text/plain", text)

    @staticmethod
    def json(value):
        """Any value that the module `json` can encode."""
        return Content("application/json", json.dumps(value, ensure_ascii=False))

    @staticmethod
    def image(data, media_type="image/png"):
        """PNG, JPEG, GIF or WebP."""
        return Content(media_type, data)

    @staticmethod
    def audio(data, media_type="audio/wav"):
        return Content(media_type, data)

    @staticmethod
    def resource(uri, body, media_type="text/plain"):
        """A copy of a resource, as text or bytes."""
        return Content(media_type, body, uri)


class View:
    """A view, which the user sees instead of the content."""

    @staticmethod
    def text(text):
        return Content.text(text)

    @staticmethod
    def diff(diff):
        """A unified diff."""
        return Content("text/x-diff", diff)

    @staticmethod
    def table(header, rows):
        """A table, sent as CSV (RFC 4180). Each row has as many cells as the header."""
        out = io.StringIO()
        csv.writer(out).writerows([header, *rows])
        return Content("text/csv", out.getvalue())


@dataclass
class Output:
    """A result with more than one text or value."""

    # Text, a `Content`, a list of both, or a value that becomes JSON.
    content: object = field(default_factory=list)
    # The value that matches the tool's output schema.
    structured: object = None
    view: Content | None = None
    # Whether something was left out. The content should say how to get the rest.
    truncated: bool = False
    annotations: dict = field(default_factory=dict)


# --- Declaration


@dataclass
class _Tool:
    declaration: wit.Tool
    call: object


_TOOLS = {}


def tool(
    name,
    description,
    properties=None,
    *,
    required=None,
    input_schema=None,
    output_schema=None,
    title=None,
    capabilities=(),
    hints=(),
    annotations=None,
):
    """Declares a function as a tool.

    `properties` are the properties of the input's JSON Schema. All are required unless `required`
    lists the required ones. `input_schema` replaces both with a complete schema.
    """
    properties = properties or {}
    schema = input_schema or {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else list(required),
        "additionalProperties": False,
    }
    declaration = wit.Tool(
        name,
        title,
        description,
        json.dumps(schema),
        None if output_schema is None else json.dumps(output_schema),
        list(capabilities),
        list(hints),
        _annotations(annotations),
    )

    def register(function):
        _TOOLS[name] = _Tool(declaration, function)
        return function

    return register


# --- The export


class Tools:
    """The export `cofferdam:plugin/tools`. The toolchain looks for this name in the main module."""

    def list_tools(self):
        return [tool.declaration for tool in _TOOLS.values()]

    def call_tool(self, name, input):
        tool = _TOOLS.get(name)
        if tool is None:
            raise Err(wit.ToolError_NotFound(f"this plugin has no tool {name!r}"))
        try:
            return _output(tool, tool.call(json.loads(input)))
        except Exception as error:
            raise Err(_tool_error(error))


def _output(tool, result):
    if isinstance(result, Output):
        output = result
    elif tool.declaration.output_schema is not None:
        output = Output(structured=result)
    else:
        output = Output(result)
    structured = None
    if tool.declaration.output_schema is not None:
        structured = json.dumps(output.structured, ensure_ascii=False)
    return wit.Output(
        [_content(piece) for piece in _pieces(output.content)],
        structured,
        None if output.view is None else _content(output.view),
        output.truncated,
        _annotations(output.annotations),
    )


def _pieces(content):
    """A list that contains a `Content` is a list of items. Other lists are JSON values."""
    if isinstance(content, list) and (
        not content or any(isinstance(piece, Content) for piece in content)
    ):
        return content
    return [content]


def _content(piece):
    if isinstance(piece, str):
        piece = Content.text(piece)
    elif not isinstance(piece, Content):
        piece = Content.json(piece)
    body = wit.Body_Text if isinstance(piece.body, str) else wit.Body_Bytes
    return wit.Content(
        piece.media_type, body(piece.body), piece.uri, _annotations(piece.annotations)
    )


def _annotations(values):
    return [wit.Annotation(name, json.dumps(value)) for name, value in (values or {}).items()]


def _tool_error(error):
    match error:
        case NotFound():
            return wit.ToolError_NotFound(str(error))
        case InvalidInput():
            return wit.ToolError_InvalidInput(wit.InputProblem(error.pointer, str(error)))
        case Denied():
            denial = _types.Denial(error.code, error.reason, error.remedy)
            return wit.ToolError_Denied(denial)
        case TimedOut():
            return wit.ToolError_TimedOut(str(error))
        case Failed():
            return wit.ToolError_Failed(str(error))
        case OSError() if not _can_read_files():
            return wit.ToolError_Failed("this tool cannot read files: it lacks `read-files`")
        case FileNotFoundError():
            return wit.ToolError_NotFound(f"{error.filename} does not exist")
        case OSError():
            return wit.ToolError_Failed(f"{error.filename}: {error.strerror or error}")
    traceback.print_exception(error)
    return wit.ToolError_Failed(f"{type(error).__name__}: {error}")


def _can_read_files():
    """Returns whether there is a workspace. Without the permission, no path exists."""
    try:
        os.stat(".")
    except OSError:
        return False
    return True
