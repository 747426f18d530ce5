"""Progress of a long call. Needs no capability."""

from .errors import missing_import

try:
    from wit_world.imports import progress as _host
except ImportError:
    raise missing_import("progress") from None


def report(message):
    """Shows the first 200 characters of a line to the user."""
    _host.report(message)
