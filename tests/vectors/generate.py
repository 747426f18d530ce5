"""Takes the streams out of the official SDKs' own tests, and writes down what those SDKs make of them.

    pip download --no-deps --no-binary :all: anthropic==2.12.0      # and unpack it
    python -m venv /tmp/sdks
    /tmp/sdks/bin/pip install anthropic==2.12.0 openai==3.54.0
    /tmp/sdks/bin/python tests/vectors/generate.py anthropic-2.12.0

Both packages are Apache-2.0; `anthropic/LICENSE` is the first one's. `anthropic/*.sse` are the files of
`tests/lib/streaming/fixtures` and `tests/fixtures`, as they are; `openai/*.sse` are the scenarios of
`tests/lib/chat/test_tool_call_deltas.py`, which builds them in code. Beside each lies, as JSON, the message that the SDK's
own client put together from it: its content, why it stopped, its usage, and the arguments of each call as they came.
"""

import http.server
import json
import pathlib
import sys
import threading

import anthropic
import openai


class Fixture(http.server.BaseHTTPRequestHandler):
    body = b""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


def by_anthropic(url):
    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    request = {"model": "claude-sonnet-5-5", "max_tokens": 1024, "messages": [{"role": "user", "content": "Hi"}]}
    arguments = {}
    for event in client.beta.messages.create(**request, stream=True):
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            arguments[event.index] = arguments.get(event.index, "") + event.delta.partial_json
    try:
        with client.beta.messages.stream(**request) as stream:
            message = stream.get_final_message().to_dict()
    except ValueError as error:
        # Arguments that are no JSON: the SDK makes an error of them, this project a call with an error for its result.
        return {"error": str(error), "arguments": list(arguments.values())}
    kept = {key: message[key] for key in ("content", "stop_reason", "usage")}
    return kept | {"arguments": [arguments.get(at) for at in range(len(message["content"]))]}


def by_openai(url):
    client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    with client.chat.completions.stream(model="gpt-4o-mini", messages=[{"role": "user", "content": "Hi"}]) as stream:
        [choice] = stream.get_final_completion().to_dict()["choices"]
    return {"message": choice["message"], "finish_reason": choice["finish_reason"]}


def openai_scenarios():
    """After `tool_call_chunks` in that test; without the scenario for two choices, as only one is ever asked for."""
    for scenario in ("initial", "after_role", "empty", "existing_tool", "parallel"):
        at = 1 if scenario in ("existing_tool", "parallel") else 0

        def chunk(delta, finish=None):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return {"id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 0, "model": "gpt-4o-mini", "choices": [choice]}

        other = {"index": 0, "id": "call_other", "type": "function", "function": {"name": "other", "arguments": "{}"}}
        first = [
            {"index": at, "id": "call_files", "type": "function", "function": {"name": "list_files"}},
            {"index": at, "function": {"arguments": '{"path"'}},
        ]
        rest = [{"index": at, "function": {"arguments": ": "}}, {"index": at, "function": {"arguments": '"."}'}}]
        chunks = []
        if scenario in ("after_role", "empty"):
            chunks.append(chunk({"role": "assistant", **({"tool_calls": []} if scenario == "empty" else {})}))
        if scenario == "existing_tool":
            chunks.append(chunk({"role": "assistant", "tool_calls": [other]}))
        if scenario == "parallel":
            first.insert(0, other)
        chunks += [chunk({"role": "assistant", "tool_calls": first}), chunk({"tool_calls": rest}), chunk({}, "tool_calls")]
        yield scenario, "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def main():
    here, sdist = pathlib.Path(__file__).parent, pathlib.Path(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fixture)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"

    fixtures = [*(sdist / "tests/lib/streaming/fixtures").glob("*.txt"), *(sdist / "tests/fixtures").glob("**/*.sse")]
    vectors = [("anthropic", path.stem.removesuffix("_response"), path.read_text()) for path in fixtures]
    vectors += [("openai", name, text) for name, text in openai_scenarios()]
    for provider, name, text in vectors:
        (here / provider).mkdir(exist_ok=True)
        (here / provider / f"{name}.sse").write_text(text)
        Fixture.body = text.encode()
        made = by_anthropic(url) if provider == "anthropic" else by_openai(url)
        (here / provider / f"{name}.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
