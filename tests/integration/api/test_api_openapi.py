"""The OpenAPI document: kept in the repository, true to the routes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from functions.api import openapi
from functions.api.routes import app

from .conftest import Client, World

KEPT = Path(__file__).parents[3] / "docs" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi.document(app)


def test_the_kept_document_is_what_the_routes_say() -> None:
    assert KEPT.read_text() == openapi.text(app), "run `python -m functions.api.openapi > docs/openapi.json` and look at the change"


def test_it_is_what_the_api_serves(world: World) -> None:
    assert Client(world, None)("GET", "/openapi.json").text == KEPT.read_text()


def test_every_route_is_in_it_with_its_parameters(document: dict[str, Any]) -> None:
    operations = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert operations == {(route.method, route.openapi_path) for route in app.routes if route.include_in_schema}
    names = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(names) == len(set(names))
    load = document["paths"]["/memory_banks/{bank_id}/entries"]["get"]["parameters"]
    limit = next(parameter for parameter in load if parameter.get("name") == "limit")
    assert (limit["schema"]["minimum"], limit["schema"]["maximum"], limit["required"]) == (1, 1000, False)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
            return own + [one for value in part.values() for one in references(value)]
        return [one for value in part for one in references(value)] if isinstance(part, list) else []

    found = references(document)
    assert found
    for reference in found:
        place: Any = document
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]


def test_every_answer_has_a_shape_except_an_empty_one(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            successes = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
            assert len(successes) == 1, (method, path)
            [(status, answer)] = successes.items()
            if status == "204":
                assert "content" not in answer
            else:
                schemas = [content["schema"] for content in answer["content"].values()]
                assert all("$ref" in schema or schema.get("format") == "binary" for schema in schemas), (method, path)


def test_the_document_is_plain_json() -> None:
    assert json.loads(openapi.text(app))["openapi"].startswith("3.1")
