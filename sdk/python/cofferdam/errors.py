"""The errors of a tool call. The model sees the message, so explain how to fix the problem."""


class ToolError(Exception):
    """The base of all errors in this module."""


class NotFound(ToolError):
    """The file or other object of the call does not exist."""


class InvalidInput(ToolError):
    """The input is valid under the schema, but the tool cannot use it.

    `pointer` is a JSON pointer (RFC 6901) into the input; empty for the whole input.
    """

    def __init__(self, pointer, message):
        super().__init__(message)
        self.pointer = pointer


class Denied(ToolError):
    """The host denied an action. If it is not caught, the model and the user see the reason."""

    def __init__(self, code, reason, remedy=None):
        super().__init__(reason)
        self.code = code
        self.reason = reason
        # What would allow the action, if anything does.
        self.remedy = remedy


class TimedOut(ToolError):
    """An operation took too long."""


class Failed(ToolError):
    """Any other failure."""


def missing_import(interface):
    """The error for a module whose interface the world of the plugin does not import."""
    if "/" not in interface:
        interface = f"cofferdam:plugin/{interface}"
    return ImportError(f"add `import {interface}@0.2.0;` to wit/world.wit")


def host_error(error):
    """Converts an error of a host interface to an error of this module."""
    value = error.value
    kind = type(value).__name__.partition("_")[2]
    match kind:
        case "Denied":
            denial = value.value
            return Denied(denial.code, denial.reason, denial.remedy)
        case "NotFound":
            return NotFound(value.value)
        case "InvalidGlob" | "Invalid":
            return InvalidInput("", value.value)
    return Failed(value.value)
