"""A case: talks in their order, and what the store must hold after each."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

SUFFIXES = (".toml", ".json")


class WrongCase(Exception):
    """A file that is no case; the message names it and what is wrong."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ExpectedDocument(_Part):
    """What one document must hold."""

    has: dict[str, Any] = Field(default_factory=dict, description="Exact values by path: user_name, or address.city")
    contains: tuple[str, ...] = Field((), description="Texts that occur somewhere in it, whatever their case")


class Expectation(_Part):
    """What must be so of a user's documents of one memory type, or of all."""

    user: str | None = Field(None, description="Whose; the talk's user if left out")
    type: str | None = Field(None, description="Memory type, such as User or Note; all types if left out")
    empty: bool = Field(False, description="No document that says anything")
    count: Annotated[int, Field(ge=0)] | None = Field(None, description="How many documents")
    documents: tuple[ExpectedDocument, ...] = Field((), description="Each is met by a document of its own")
    lacks: tuple[str, ...] = Field((), description="Texts that occur in none")


class Talk(_Part):
    """One conversation. `messages` are one-item objects: {"user": "…"} or {"assistant": "…"}."""

    user: str
    messages: Annotated[tuple[Annotated[dict[str, str], Field(min_length=1, max_length=1)], ...], Field(min_length=1)]
    expect: tuple[Expectation, ...] = ()


class Case(_Part):
    """One file."""

    name: str = ""
    about: str = ""
    capture: dict[str, Any] = Field(default_factory=dict, description="Capture settings of its bank, such as memory_types")
    talk: Annotated[tuple[Talk, ...], Field(min_length=1)]


def read(path: Path) -> Case:
    """The case in a file, called like the file unless it says otherwise. Raises `WrongCase`."""
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        case = Case.model_validate({"name": path.stem} | content)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise WrongCase(f"{path}: {wrong}") from error
    except (OSError, ValueError, TypeError) as error:
        raise WrongCase(f"{path}: {error}") from error
    if not any(talk.expect for talk in case.talk):
        raise WrongCase(f"{path}: it expects nothing")
    return case


def read_all(folder: Path) -> list[Case]:
    """The cases of a folder, by file name; of a file, the one. Raises `WrongCase`, also where there is none."""
    paths = [folder] if folder.is_file() else sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)
    if not paths:
        raise WrongCase(f"{folder}: no case; a case is a file that ends in {' or '.join(SUFFIXES)}")
    return [read(path) for path in paths]
