"""The examples of docs/search.md are requests that the API takes, and show every field."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from memory_banks.requests import SearchEntries

EXAMPLES = re.findall(r"```json\n(.*?)\n```", (Path(__file__).parents[2] / "docs" / "search.md").read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_taken(example: str) -> None:
    body = json.loads(example)
    assert SearchEntries.model_validate(body).model_fields_set == set(body)


def test_every_field_has_an_example() -> None:
    assert {field for example in EXAMPLES for field in json.loads(example)} == set(SearchEntries.model_fields)
