"""Read-only sub-agents. Needs the capability `DELEGATE`."""

from dataclasses import dataclass

from componentize_py_types import Err

from .errors import Failed, host_error, missing_import

try:
    from wit_world.imports import agents as _host
except ImportError:
    raise missing_import("agents") from None


class AgentFailed(Failed):
    """The sub-agent gave no answer. `code` is the reason, such as `timed-out` or `overflow`."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


@dataclass
class Answer:
    """The answer of a sub-agent."""

    text: str
    # False if the sub-agent reached its limit of turns.
    complete: bool
    turns: int


def delegate(task):
    """Gives a task to a sub-agent and waits for the answer. A call can delegate four tasks."""
    try:
        answer = _host.delegate(task)
    except Err as error:
        if isinstance(error.value, _host.AgentError_Failed):
            failure = error.value.value
            raise AgentFailed(failure.code, failure.message) from None
        raise host_error(error) from None
    return Answer(answer.text, answer.complete, answer.turns)
