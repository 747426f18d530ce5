"""HTTP requests. Needs the capability `fetch(…)`, and in `wit/world.wit` the line
`import wasi:http/outgoing-handler@0.2.0;`.

    from cofferdam import http

    response = http.send("GET", "https://api.example.com/items", headers={"accept": "text/plain"})
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from componentize_py_types import Err, Ok

from .errors import Denied, Failed, InvalidInput, TimedOut, missing_import

try:
    from wit_world.imports import outgoing_handler as _handler
    from wit_world.imports import streams as _streams
    from wit_world.imports import wasi_http_types as _http
except ImportError:
    raise missing_import("wasi:http/outgoing-handler") from None

# The number of bytes that a stream takes in one call.
_PIECE = 4096


@dataclass
class Response:
    """The response of a server, which can have an error status."""

    status: int
    # Names and values. A name can occur more than once.
    headers: list
    body: bytes
    # Whether `body` is the whole body.
    complete: bool

    def header(self, name):
        """Returns the first header with a name, ignoring case."""
        values = (value for known, value in self.headers if known.lower() == name.lower())
        return next(values, None)

    @property
    def text(self):
        """The body as text. U+FFFD replaces bytes that are not UTF-8."""
        return self.body.decode(errors="replace")


def send(method, url, *, headers=None, body=b"", timeout=None, max_bytes=8 << 20):
    """Sends a request and reads the response, at most `max_bytes` of its body.

    `headers` is a `dict` or a list of pairs. `timeout`, a `timedelta`, is the maximum time
    without data. To follow a redirect, send another request.
    """
    try:
        return _send(method, url, headers, body, timeout, max_bytes)
    except Err as error:
        raise _failure(error.value) from None


def _send(method, url, headers, body, timeout, max_bytes):
    parts = urlsplit(url)
    schemes = {"https": _http.Scheme_Https, "http": _http.Scheme_Http}
    if parts.scheme not in schemes or not parts.netloc:
        raise InvalidInput("", f"{url} does not begin with `https://` or `http://` and a host")
    fields = _http.Fields()
    for name, value in dict(headers or {}).items() if not isinstance(headers, list) else headers:
        try:
            fields.append(name, value.encode())
        except Err:
            raise InvalidInput("", f"the header {name} cannot be sent") from None
    request = _http.OutgoingRequest(fields)
    known = getattr(_http, f"Method_{method.capitalize()}", None)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        request.set_method(known() if known else _http.Method_Other(method))
        request.set_scheme(schemes[parts.scheme]())
        request.set_authority(parts.netloc)
        request.set_path_with_query(path)
        outgoing = request.body() if body else None
    except Err:
        raise InvalidInput("", f"a request of {method} {url} cannot be sent") from None
    options = None
    if timeout is not None:
        options = _http.RequestOptions()
        options.set_first_byte_timeout(round(timeout.total_seconds() * 1e9))
        options.set_between_bytes_timeout(round(timeout.total_seconds() * 1e9))
    pending = _handler.handle(request, options)
    if outgoing is not None:
        with outgoing.write() as stream:
            for start in range(0, len(body), _PIECE):
                stream.blocking_write_and_flush(body[start : start + _PIECE])
        _http.OutgoingBody.finish(outgoing, None)
    with pending.subscribe() as ready:
        ready.block()
    answer = pending.get()
    incoming = answer.value if isinstance(answer, Ok) else None
    if isinstance(incoming, Err):
        raise incoming
    if not isinstance(incoming, Ok):
        raise Failed("there is no response")
    return _read(incoming.value, max_bytes)


def _read(incoming, max_bytes):
    entries = incoming.headers().entries()
    headers = [(name, value.decode(errors="replace")) for name, value in entries]
    status, received = incoming.status(), bytearray()
    with incoming.consume() as body, body.stream() as stream:
        try:
            while len(received) <= max_bytes:
                received += stream.blocking_read(max_bytes + 1 - len(received))
        except Err as error:
            if not isinstance(error.value, _streams.StreamError_Closed):
                raise Failed(error.value.value.to_debug_string()) from None
    return Response(status, headers, bytes(received[:max_bytes]), len(received) <= max_bytes)


def _failure(code):
    text = getattr(code, "value", None)
    if isinstance(text, str) and text.startswith("denied ("):
        name, _, reason = text.removeprefix("denied (").partition("): ")
        return Denied(name, reason)
    if isinstance(text, str):
        return Failed(text)
    name = type(code).__name__.partition("_")[2] or "unknown error"
    return TimedOut(name) if name.endswith("Timeout") else Failed(f"the request failed: {name}")
