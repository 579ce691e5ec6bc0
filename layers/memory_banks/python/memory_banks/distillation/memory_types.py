"""Memory types: the kinds of documents that schemas distil, the default ones, and whether a schema can be one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from ..capture.settings import CaptureSettings, MemoryType
from ..errors import Invalid
from ..limits import walk

SCHEMA_BYTES = 16_384
"""Of JSON. It goes into each prompt, and with each planned edit."""
SCHEMA_DEPTH = 32

Loc = tuple[str | int, ...]

USER = MemoryType(
    name="User",
    description="Keeps up-to-date information about the user.",
    update_mode="patch",
    parameters={
        "type": "object",
        "properties": {
            "user_name": {"type": "string", "description": "The name the user prefers"},
            "age": {"type": "integer", "description": "The user's age in years"},
            "interests": {"type": "array", "items": {"type": "string"}, "description": "What the user is interested in"},
            "home": {"type": "string", "description": "Where the user lives: town, neighbourhood"},
            "occupation": {"type": "string", "description": "What the user does for a living, or studies"},
            "conversation_preferences": {
                "type": "array",
                "items": {"type": "string"},
                "description": "How the user wants to be talked to: styles, pronouns, topics to avoid",
            },
        },
    },
)
"""One document a user, kept up to date."""

NOTE = MemoryType(
    name="Note",
    description="Notable memories the user shared, for later recall.",
    update_mode="insert",
    parameters={
        "type": "object",
        "properties": {
            "context": {
                "type": "string",
                "description": 'The situation in which it applies, with caveats such as "only at work"',
            },
            "content": {"type": "string", "description": "The specific information, preference or event to remember"},
        },
        "required": ["context", "content"],
    },
)
"""Any number of documents a user."""

DEFAULTS = (USER, NOTE)


def of(settings: CaptureSettings) -> tuple[MemoryType, ...]:
    """The memory types of a bank: its own, or the default ones when it has none."""
    return settings.memory_types or DEFAULTS


def check(memory_types: tuple[MemoryType, ...], loc: Loc) -> None:
    """Raises `Invalid`, naming the field, for two types of one name, and for a schema that is none or can't be used."""
    names: set[str] = set()
    for position, one in enumerate(memory_types):
        if one.name in names:
            raise Invalid((*loc, position, "name"), f"there are two memory types named {one.name!r}", "name_taken")
        names.add(one.name)
        check_schema(one.parameters, (*loc, position, "parameters"))


def check_schema(parameters: Mapping[str, Any], loc: Loc) -> None:
    """Raises `Invalid` unless this is a JSON Schema of an object that needs nothing from elsewhere."""
    for path, _, depth in walk(parameters):
        if depth > SCHEMA_DEPTH:
            raise Invalid((*loc, *path[:3]), f"is nested deeper than {SCHEMA_DEPTH} levels", "too_deep")
    try:
        size = len(json.dumps(parameters, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise Invalid(loc, f"must be JSON: {error}", "not_json") from None
    if size > SCHEMA_BYTES:
        raise Invalid(loc, f"at most {SCHEMA_BYTES:,} bytes of JSON are allowed, these are {size:,}", "too_long")
    _check_form(parameters, loc)
    types = parameters.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise Invalid((*loc, "type"), f"a document is an object, so its schema must be of type object, not {types!r}", "schema")
    for path, part, _ in walk(parameters):
        if isinstance(part, dict):
            _check_references(parameters, part, (*loc, *path), root=not path)
    from .validating import validates

    if not validates(parameters):
        raise Invalid(loc, "leads to itself without end", "schema")


def _check_form(parameters: Mapping[str, Any], loc: Loc) -> None:
    # Imported here: most processes never see a schema.
    from jsonschema import Draft3Validator, Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    dialect = parameters.get("$schema")
    chosen = validator_for(parameters, default=Draft202012Validator) if dialect is None else validator_for(parameters, default=None)
    if chosen in (None, Draft3Validator):
        raise Invalid((*loc, "$schema"), f"{dialect!r} is no version of JSON Schema that is understood", "schema")
    try:
        chosen.check_schema(parameters)
    except SchemaError as error:
        raise Invalid((*loc, *error.path), f"is no JSON Schema: {error.message[:300]}", "schema") from None


def _check_references(root_schema: Mapping[str, Any], part: Mapping[str, Any], loc: Loc, *, root: bool) -> None:
    for name in ("$dynamicRef", "$recursiveRef", "$id"):
        if isinstance(part.get(name), str) and not (root and name == "$id"):
            raise Invalid((*loc, name), f"{name} is not supported", "schema")
    seen: list[str] = []
    current: Any = part
    while isinstance(current, Mapping) and isinstance(reference := current.get("$ref"), str):
        if reference in seen:
            raise Invalid((*loc, "$ref"), f"{reference!r} leads to itself", "schema")
        seen.append(reference)
        current = resolved(root_schema, reference)
        if current is None:
            message = f"{reference!r} is not there; references lead into the schema itself, such as #/$defs/Address"
            raise Invalid((*loc, "$ref"), message, "schema")


def resolved(root: Mapping[str, Any], reference: str) -> Any:
    """What a reference into the schema itself leads to; None where nothing is, or for any other reference."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    current: Any = root
    for token in unquote(reference[1:]).split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(current, Mapping) and name in current:
            current = current[name]
        elif isinstance(current, list) and name.isdecimal() and int(name) < len(current):
            current = current[int(name)]
        else:
            return None
    return current
