"""Per-session key-value storage for one tool. Needs the capability `KEEP_STATE`.

A key is 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `.`, `_`, `/` and `-`. A value has at most
64 KiB. A tool has at most 256 keys and 256 KiB in total.
"""

from componentize_py_types import Err

from .errors import host_error, missing_import

try:
    from wit_world.imports import state as _host
except ImportError:
    raise missing_import("state") from None


def get(key):
    """Returns the value of a key as bytes, or `None` if there is none."""
    return _call(_host.get, key)


def get_text(key):
    """Returns the value of a key as text, or `None` if there is none."""
    value = get(key)
    return None if value is None else value.decode()


def set(key, value):
    """Sets the value of a key to bytes."""
    _call(_host.set, key, bytes(value))


def set_text(key, text):
    """Sets the value of a key to text."""
    set(key, text.encode())


def delete(key):
    """Deletes a key. Deleting a key that does not exist is not an error."""
    _call(_host.delete, key)


def keys():
    """Returns all keys in order."""
    return _call(_host.keys)


def _call(function, *arguments):
    try:
        return function(*arguments)
    except Err as error:
        raise host_error(error) from None
