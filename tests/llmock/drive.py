"""Breaks providers on purpose and has the program work through it.

`llmock` (PyPI, MIT) is a server that fakes providers, injects the faults it is told to, and judges the client by what the
client then did: https://github.com/JulienRabault/LLMock. This script starts it, has `cofferdam run` meet each fault below
with both providers, checks how each run ended, and leaves the verdict to `llmock report --strict`.

    python tests/llmock/drive.py target/debug/cofferdam

It wants to be run with the Python of the environment that llmock is installed in, as `.ci/run` does.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

# One word after the other, so that a fault can hit between two of them.
ANSWER = "All of this is the whole answer, from its first word to its last."
RETRIED = {"outcome": "answered", "exit_code": 0}
FAILED = {"outcome": "provider-error", "exit_code": 7}


def fail(status, **more):
    return {"type": "fail", "status": status, **more}


def stream_fault(kind, after, **more):
    return {"type": "stream_fault", "kind": kind, "after_chunks": after, **more}


def faults():
    """What is injected, and how the run has to end."""
    for status in (408, 409, 429, 500, 502, 503, 504, 529):
        yield f"status {status}, once", [fail(status)], RETRIED
    yield "a busy provider, twice, without advice", [fail(503, times=2)], RETRIED
    yield "a rate limit, twice, with a pause of whole seconds", [fail(429, retry_after=1, times=2)], RETRIED
    yield "a rate limit with a pause in milliseconds", [fail(429, retry_after=1.3)], RETRIED
    yield "an outage that stays", [fail(503, times=3)], FAILED
    for status in (400, 401, 403, 404, 422):
        yield f"status {status}, which no other attempt will cure", [fail(status)], FAILED
    # Nobody sees the text of a run with `--output json` before its end, so that a broken response can begin anew.
    for after in (0, 1, 2, 3, 5, 9):
        yield f"the connection breaks after {after} events", [stream_fault("disconnect", after)], RETRIED
        yield f"the stream ends after {after} events", [stream_fault("truncate", after)], RETRIED
        yield f"event {after + 1} is damaged", [stream_fault("malformed", after)], RETRIED
    yield "one trouble after the other", [fail(500), stream_fault("truncate", 4)], RETRIED
    # Not three times: llmock takes the last attempt for accepted, though the run fails (tests/requests has that case).
    yield "the stream ends early, twice", [stream_fault("truncate", 3, times=2)], RETRIED
    yield "silence in the middle", [stream_fault("stall", 4, stall_seconds=20)], FAILED
    yield "slow, but not too slow", [{"type": "slow_first_token", "seconds": 1}], RETRIED
    call = {"type": "reply", "tool_calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}
    yield "a call, cut within its arguments", [call | {"times": 2}, stream_fault("truncate", 3)], RETRIED
    yield "a call, broken within its arguments", [call | {"times": 2}, stream_fault("disconnect", 3)], RETRIED
    yield "arguments that are not JSON", [{"type": "tool_fault", "kind": "malformed_arguments"}], RETRIED
    yield "a tool that was never offered", [{"type": "tool_fault", "kind": "unknown_tool"}], RETRIED


class Mock:
    """A running llmock."""

    def __init__(self, log):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        # Between two events is some time, so that it is seen whether a client stops reading after a damaged one.
        serve = ["-m", "llmock.cli", "serve", "--port", str(self.port), "--tool-mode", "off", "--stream-chunk-delay-ms", "25"]
        self.process = subprocess.Popen([sys.executable, *serve], stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.request("GET", "/_llmock/scenario")
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("llmock does not start")
                time.sleep(0.1)

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, method=method), timeout=30) as answer:
            return json.load(answer)

    def script(self, behaviours):
        self.request("DELETE", "/_llmock/scenario")
        replies = [{"type": "reply", "text": ANSWER, "times": None}]
        self.request("POST", "/_llmock/scenario", {"behaviors": [*behaviours, *replies]})

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run(program, home, provider, mock, number, name):
    """One request; its prompt is its own, so that llmock can tell the attempts of one from those of another."""
    base, model, key = {
        "openai": (f"{mock.url}/v1", "openai:gpt-4.1", "OPENAI_API_KEY"),
        "anthropic": (f"{mock.url}/anthropic", "anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
    }[provider]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), key: "sk-llmock"}
    arguments = ["--model", model, "--base-url", base, "--config", str(home / "config.toml"), "-C", str(home / "work")]
    command = [program, "run", f"Task {number} of {provider}: {name}.", "--output", "json", *arguments]
    ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    try:
        return json.loads(ran.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise SystemExit(f"{command} gave no report: {ran}")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        (home / "work").mkdir()
        (home / "work" / "a.txt").write_text("Some text.\n")
        (home / "config.toml").write_text("[provider]\nidle_timeout_seconds = 3\nfirst_event_timeout_seconds = 10\n")
        with open(home / "llmock.log", "w+") as log:
            mock = Mock(log)
            try:
                for number, (name, behaviours, expected) in enumerate(faults(), 1):
                    for provider in ("openai", "anthropic"):
                        mock.script(behaviours)
                        report = run(program, home, provider, mock, number, name)
                        fine = all(report[key] == value for key, value in expected.items())
                        fine = fine and report["text"] == (ANSWER if expected is RETRIED else None)
                        print(f"{'ok  ' if fine else 'FAIL'}  {provider}: {name}", flush=True)
                        if not fine:
                            problems.append(f"{provider}: {name}: {json.dumps(report)}")
                verdict = subprocess.run([sys.executable, "-m", "llmock.cli", "report", "--strict", "--url", mock.url])
                if mock.request("GET", "/_llmock/verdict")["attempts"] == 0:
                    problems.append("llmock saw no request")
            finally:
                mock.stop()
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems or verdict.returncode else 0)


if __name__ == "__main__":
    main()
