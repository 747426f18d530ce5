"""Running commands on the user's machine. Needs the capability `RUN_COMMANDS`."""

from dataclasses import dataclass
from datetime import timedelta

from componentize_py_types import Err

from .errors import host_error, missing_import

try:
    from wit_world.imports import commands as _host
except ImportError:
    raise missing_import("commands") from None


@dataclass
class CommandOutput:
    """The result of a command, even if the command fails or times out."""

    # The exit code; `None` if the command did not exit by itself.
    exit_code: int | None
    # The signal that ended the command, if any.
    signal: int | None
    # Whether the command exceeded its time limit.
    timed_out: bool
    stdout: str
    stderr: str
    elapsed: timedelta


def run(line, *, directory="", timeout=timedelta(seconds=120)):
    """Runs a command line with `sh -c` in a directory of the workspace, and waits until it exits.

    The line needs approval, by the user or by a rule. `timeout` is 1 to 600 seconds.
    """
    nanoseconds = timeout // timedelta(microseconds=1) * 1000
    try:
        output = _host.run(_host.Command(line, directory, nanoseconds))
    except Err as error:
        raise host_error(error) from None
    status = output.status
    exited = isinstance(status, _host.ExitStatus_Exited)
    signaled = isinstance(status, _host.ExitStatus_Signaled)
    return CommandOutput(
        status.value if exited else None,
        status.value if signaled else None,
        isinstance(status, _host.ExitStatus_TimedOut),
        output.stdout,
        output.stderr,
        timedelta(microseconds=output.elapsed / 1000),
    )
