"""Fast access to many files. Needs the capability `READ_FILES` or `WRITE_FILES`.

    from cofferdam.workspace import Walk

    with Walk("src", globs=["*.py"]) as walk:
        for file in walk.files():
            print(file.path, len(file.data))
"""

from dataclasses import dataclass
from datetime import datetime, timezone

from componentize_py_types import Err

from .errors import host_error, missing_import

try:
    from wit_world.imports import workspace as _host
except ImportError:
    raise missing_import("workspace") from None

# The number of entries in one call of the host.
_ENTRIES = 1024
# The bytes of files in one call of the host.
_BATCH_BYTES = 1 << 20


@dataclass
class Entry:
    """A file, directory or symbolic link of the workspace."""

    # The path relative to the workspace.
    path: str
    # `file`, `directory`, `symlink` or `other`.
    kind: str
    # The size of a file in bytes; 0 for any other entry.
    size: int
    # The time of the last change in UTC, if it is known.
    modified: datetime | None


@dataclass
class File:
    """A file with its content."""

    path: str
    data: bytes

    @property
    def text(self):
        """The content as text. U+FFFD replaces bytes that are not UTF-8."""
        return self.data.decode(errors="replace")


class Walk:
    """A walk through the workspace in the order of paths. Use it with `with`, or call `close`.

    A call can have 16 open walks. `root` is a directory or a file; empty for the whole workspace.
    `globs` have the syntax of `.gitignore`. If `required` has byte strings, `files` leaves out
    files that contain none of them.
    """

    def __init__(
        self,
        root="",
        *,
        globs=(),
        hidden=False,
        respect_ignore=True,
        max_depth=None,
        required=(),
        required_ignore_case=False,
    ):
        options = _host.WalkOptions(
            root,
            list(globs),
            hidden,
            respect_ignore,
            max_depth,
            list(required),
            required_ignore_case,
        )
        self._walk = _call(_host.open_walk, options)

    def entries(self):
        """Yields the entries that are left."""
        while batch := _call(self._walk.next_entries, _ENTRIES):
            for entry in batch:
                time = entry.modified
                modified = time and datetime.fromtimestamp(
                    time.seconds + time.nanoseconds / 1e9, timezone.utc
                )
                yield Entry(entry.path, entry.kind.name.lower(), entry.size, modified)

    def files(self):
        """Yields the files that are left, each with its whole content."""
        parts = []
        while (batch := _call(self._walk.next_files, _BATCH_BYTES)).pieces:
            start = 0
            for piece in batch.pieces:
                parts.append(batch.data[start : start + piece.length])
                start += piece.length
                if not piece.more:
                    yield File(piece.path, b"".join(parts))
                    parts = []

    def problems(self):
        """Returns a line for each path that could not be read so far, at most 100."""
        return self._walk.problems()

    def close(self):
        """Ends the walk."""
        walk, self._walk = self._walk, None
        if walk is not None:
            walk.__exit__(None, None, None)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()


def _call(function, *arguments):
    try:
        return function(*arguments)
    except Err as error:
        raise host_error(error) from None
