"""Plans for the user's approval. Needs the capability `PRESENT_PLAN`."""

from componentize_py_types import Err

from .errors import host_error, missing_import

try:
    from wit_world.imports import plans as _host
except ImportError:
    raise missing_import("plans") from None


def present(plan):
    """Presents a plan in Markdown and waits for the decision. Returns the new mode."""
    try:
        return _host.present(plan)
    except Err as error:
        raise host_error(error) from None
