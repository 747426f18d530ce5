"""Counts the lines of a file."""

from cofferdam import READ_FILES, WORKSPACE_PATH, Failed, Tools, tool


@tool(
    "count_lines",
    "Counts the lines of a text file, or the lines that contain a string.",
    {
        "path": WORKSPACE_PATH | {"description": "The file, relative to the workspace."},
        "containing": {"type": "string", "description": "Count only lines with this string."},
    },
    required=["path"],
    title="Count lines",
    capabilities=[READ_FILES],
)
def count_lines(input):
    try:
        with open(input["path"], encoding="utf-8", newline="\n") as file:
            wanted = input.get("containing", "")
            return str(sum(1 for line in file if wanted in line))
    except UnicodeDecodeError:
        raise Failed(f"{input['path']} is not text")
