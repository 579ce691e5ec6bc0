"""The OpenAPI document: what Powertools generates from the routes, made true where it is not, and the page that shows it."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from memory_banks import versions
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from .resolver import Resolver
from .shapes import SHAPES, UNIONS

_REF = "#/components/schemas/{model}"
_ERRORS = {
    400: "The request makes no sense here, or names an unknown version",
    401: "No valid API key",
    403: "The key lacks the scope",
    404: "It is not there, or belongs to another account",
    409: "It contradicts what is there",
    410: "It was here and is no more",
    412: "If-Match names another version",
    413: "Over a limit in bytes or count",
    415: "The body is not JSON",
    500: "Something went wrong on our side",
    503: "The database or the vector store can't be reached",
}
_ALWAYS = (400, 401, 403, 404, 500, 503)
_WITH_BODY = (413, 415)
_SOMETIMES = {
    "create_bank": (409,),
    "update_bank": (409,),
    "write_entries": (409,),
    "capture_run": (409,),
    "edit_message": (412,),
    "retry_job": (409,),
    "register_agent": (409,),
    "rebuild_index": (409,),
    "load_entries": (410,),
    "get_entry": (410,),
    "correct_entry": (410, 412),
    "delete_entry": (410,),
    "put_item": (412,),
    "delete_item": (412,),
    "get_item": (413,),
    "download_export": (409, 410, 413),
    "get_content": (410,),
    "delete_content": (410,),
    "list_embeddings": (410,),
}


@lru_cache(maxsize=1)
def text(app: Resolver) -> str:
    """The document as JSON."""
    return json.dumps(document(app), ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def document(app: Resolver) -> dict[str, Any]:
    """The document of these routes."""
    made: dict[str, Any] = json.loads(
        app.get_openapi_json_schema(
            title="Memory Banks",
            version=versions.LATEST,
            description="Memory for AI agents: banks, entries, search and context. `docs/api.md` tells more.",
        )
    )
    schemas = made["components"]["schemas"]
    _, shapes = models_json_schema([(shape, "serialization") for shape in SHAPES], ref_template=_REF)
    schemas |= shapes["$defs"]
    schemas |= {
        name: {"title": name, "anyOf": [{"$ref": _REF.format(model=one)} for one in parts]} for name, parts in UNIONS.items()
    }
    schemas.pop("ResponseValidationError", None)
    made["components"] |= _shared()
    made["security"] = [{"ApiKey": []}, {"Bearer": []}]
    for route in app.routes:
        if route.include_in_schema:
            operation = made["paths"][route.openapi_path][route.method.lower()]
            operation["operationId"] = route.func.__name__
            operation["description"] = (route.func.__doc__ or "").strip()
            _true_parameters(operation, route.dependant.query_params, schemas)
            _true_responses(operation)
    return made


def _shared() -> dict[str, Any]:
    """What all operations refer to."""
    known = {"type": "string", "enum": list(versions.KNOWN)}
    error = {"application/json": {"schema": {"$ref": _REF.format(model="ErrorAnswer")}}}
    header = {versions.HEADER: {"$ref": "#/components/headers/Version"}}
    return {
        "securitySchemes": {
            "ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "Bearer": {"type": "http", "scheme": "bearer"},
        },
        "headers": {"Version": {"description": "The API version of this answer", "schema": known}},
        "parameters": {
            "Version": {
                "name": versions.HEADER,
                "in": "header",
                "required": False,
                "description": "The API version this request means; else the account's pin, else the default",
                "schema": known,
            }
        },
        "responses": {
            f"Error{status}": {"description": description, "headers": header, "content": error}
            for status, description in _ERRORS.items()
        },
    }


def page(app: Resolver) -> str:
    """An HTML page to read and try the routes; Swagger UI, all in one file."""
    from aws_lambda_powertools.event_handler.openapi.swagger_ui import generate_swagger_html

    room = files("aws_lambda_powertools.event_handler.openapi.swagger_ui")
    script = (room / "swagger-ui-bundle.min.js").read_text("utf-8")
    style = (room / "swagger-ui.min.css").read_text("utf-8")
    spec = text(app).replace("</", "<\\/")
    return generate_swagger_html(spec, script, style, "", None, persist_authorization=True)


def _true_parameters(operation: dict[str, Any], query: list[Any], schemas: dict[str, Any]) -> None:
    """Powertools drops the limits of parameters that come as a model: take them from the model."""
    parameters = operation.setdefault("parameters", [])
    for parameter in query:
        model = parameter.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            schema = model.model_json_schema(ref_template=_REF)
            schemas.pop(model.__name__, None)
            for one in parameters:
                if one["in"] == "query" and one["name"] in schema["properties"]:
                    inner = dict(schema["properties"][one["name"]])
                    one["description"] = inner.pop("description", one.get("description", ""))
                    one["required"] = one["name"] in schema.get("required", [])
                    one["schema"] = _without_null(inner)
    parameters.append({"$ref": "#/components/parameters/Version"})


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter can be left out, but not be null."""
    options = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if len(options) != 1 or len(schema["anyOf"]) == 1:
        return schema
    kept = {name: value for name, value in schema.items() if name != "anyOf" and not (name == "default" and value is None)}
    inner: dict[str, Any] = options[0]
    return kept | inner


def _true_responses(operation: dict[str, Any]) -> None:
    """The errors, the version that every answer names, and no body where there is none."""
    responses = operation["responses"]
    if "204" in responses:
        responses["204"].pop("content", None)
    for response in responses.values():
        response["headers"] = {versions.HEADER: {"$ref": "#/components/headers/Version"}}
    errors = _ALWAYS + (_WITH_BODY if "requestBody" in operation else ()) + _SOMETIMES.get(operation["operationId"], ())
    for status in errors:
        responses.setdefault(str(status), {"$ref": f"#/components/responses/Error{status}"})


if __name__ == "__main__":
    import sys

    from .routes import app as all_routes

    sys.stdout.write(text(all_routes))
