"""Turns the request types of the official SDKs into closed JSON Schemas: what they do not name is not allowed.

    python -m venv /tmp/sdks
    /tmp/sdks/bin/pip install anthropic==2.12.0 openai==3.54.0
    /tmp/sdks/bin/python tests/schemas/generate.py

Both packages are Apache-2.0. A test that sends a body to a scripted provider has it checked against these schemas, so that
somebody else's reading of each API judges ours.
"""

import importlib.metadata
import json
import pathlib

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import BaseModel, TypeAdapter

# Keys of a schema whose values are maps from names to schemas, from which no name may be taken for a keyword.
MAPS = ("properties", "$defs")
# For people, and bulky.
REMARKS = ("title", "description", "default")
# Below these keys are values, not schemas.
VALUES = ("const", "enum", "required")


def walk(schema, change):
    """Puts `change` of each subschema in its place, from the leaves up."""
    if isinstance(schema, list):
        return [walk(item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    after = {}
    for key, value in schema.items():
        if key in MAPS:
            value = {name: walk(below, change) for name, below in value.items()}
        elif key not in VALUES:
            value = walk(value, change)
        after[key] = value
    return change(after)


def references(schema):
    found = set()

    def note(below):
        if "$ref" in below:
            found.add(below["$ref"].removeprefix("#/$defs/"))
        return below

    walk(schema, note)
    return found


def subclasses(parent):
    return {parent}.union(*(subclasses(child) for child in parent.__subclasses__()))


def closed(request_type):
    schema = TypeAdapter(request_type).json_schema()
    # The SDKs let the classes of responses stand in requests, for convenience. What those say of responses (`null` where a
    # key may only be absent, say) holds for no request: the types made for requests have to do. A few typed dictionaries
    # have the name of a class, but the classes are open.
    names = {below.__name__ for below in subclasses(BaseModel)}
    responses = {name for name, below in schema["$defs"].items() if name in names and below.get("additionalProperties") is True}
    of_responses = [{"$ref": f"#/$defs/{name}"} for name in responses]

    def close(below):
        for union in ("anyOf", "oneOf"):
            if union in below:
                below[union] = [option for option in below[union] if option not in of_responses]
                below.pop("discriminator", None)
        if "properties" in below:
            # A typed dictionary is open only where it says so, with a type for what it does not name.
            below.setdefault("additionalProperties", False)
        return {key: value for key, value in below.items() if key not in REMARKS}

    schema = walk(schema, close)
    # Only what is still referred to, from the body on.
    everything, needed, todo = schema.pop("$defs"), {}, references(schema)
    while todo:
        name = todo.pop()
        needed[name] = everything[name]
        todo |= references(everything[name]) - needed.keys()
    assert not needed.keys() & responses, "a response is still referred to"
    return schema | {"$defs": dict(sorted(needed.items()))}


def main():
    here = pathlib.Path(__file__).parent
    for file, package, request_type in [
        ("anthropic", "anthropic", MessageCreateParamsStreaming),
        ("openai", "openai", CompletionCreateParamsStreaming),
        ("openai-responses", "openai", ResponseCreateParamsStreaming),
    ]:
        origin = f"{request_type.__name__} of {package} {importlib.metadata.version(package)} (PyPI, Apache-2.0), by generate.py"
        head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$comment": origin}
        schema = head | closed(request_type)
        defs = schema.pop("$defs")
        # A line for each definition: short enough to commit, and a new version of the package makes a diff to read.
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in schema.items()]
        lines.append('"$defs": {\n' + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in defs.items()) + "\n}")
        (here / f"{file}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
