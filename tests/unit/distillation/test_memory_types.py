"""Memory types, and what a model may make of a document under a schema."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_banks.capture.settings import CaptureSettings, MemoryType
from memory_banks.distillation import checking, memory_types
from memory_banks.distillation.memory_types import NOTE, USER, check_schema
from memory_banks.distillation.validating import Unfit, settled
from memory_banks.errors import Invalid

from tests.doubles.world import World

LOC = ("body", "capture", "memory_types", 0, "parameters")

ADDRESS = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["free", "busy"]},
        "age": {"type": "integer", "minimum": 0},
        "partner": {"type": ["string", "null"]},
        "address": {"$ref": "#/$defs/Address"},
        "friends": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
        "extra": {"type": "object"},
        "scores": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "$defs": {"Address": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def refused(parameters: Any) -> Invalid:
    with pytest.raises(Invalid) as failed:
        check_schema(parameters, LOC)
    assert failed.value.loc[: len(LOC)] == LOC
    return failed.value


def reason(parameters: Any, before: Any, after: Any) -> str:
    with pytest.raises(Unfit) as failed:
        settled(parameters, before, after)
    return str(failed.value)


# --------------------------------------------------------------------------------------------------------------------
# The types


def test_the_default_types_are_those_of_the_contract() -> None:
    assert memory_types.of(CaptureSettings(distillation="schemas")) == (USER, NOTE)
    assert (USER.update_mode, NOTE.update_mode) == ("patch", "insert")
    fields = {name: one["type"] for name, one in USER.parameters["properties"].items()}
    assert fields == {
        "user_name": "string",
        "age": "integer",
        "interests": "array",
        "home": "string",
        "occupation": "string",
        "conversation_preferences": "array",
    }
    assert "required" not in USER.parameters
    assert list(NOTE.parameters["properties"]) == NOTE.parameters["required"] == ["context", "content"]
    assert (USER.system_prompt, NOTE.system_prompt) == ("", "")
    for one in (USER, NOTE):
        check_schema(one.parameters, LOC)


def test_a_shorter_form_is_a_custom_type() -> None:
    short = MemoryType.model_validate(
        {"name": "User", "description": "x", "parameters": {"properties": {"user_name": {"type": "string"}}}}
    )
    assert (short.update_mode, short.system_prompt) == ("patch", "")
    own = CaptureSettings(distillation="schemas", memory_types=(short,))
    assert memory_types.of(own) == (short,)
    checking.check(World(), own)
    assert settled(short.parameters, None, {"user_name": "Bob"}) == {"user_name": "Bob"}


@pytest.mark.parametrize(
    ("parameters", "where", "message"),
    [
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, ("properties", "a", "type"), "no JSON Schema"),
        ({"type": "object", "properties": []}, ("properties",), "no JSON Schema"),
        ({"properties": {"a": {"pattern": "("}}}, ("properties", "a", "pattern"), "regex"),
        ({"type": "array"}, ("type",), "must be of type object"),
        ({"properties": {"a": {"$ref": "https://x.example/y"}}}, ("properties", "a", "$ref"), "lead into the schema itself"),
        ({"properties": {"a": {"$ref": "#/$defs/B"}}}, ("properties", "a", "$ref"), "is not there"),
        ({"$ref": "#"}, ("$ref",), "leads to itself"),
        ({"allOf": [{"$ref": "#"}]}, (), "leads to itself"),
        ({"$schema": "https://x.example/schema"}, ("$schema",), "no version"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, ("$schema",), "no version"),
        ({"properties": {"a": {"$dynamicRef": "#b"}}}, ("properties", "a", "$dynamicRef"), "not supported"),
        ({"description": "x" * 20_000}, (), "bytes"),
        ({"a": float("nan")}, (), "JSON"),
    ],
)
def test_what_is_no_schema_is_refused_by_the_field(parameters: Any, where: Any, message: str) -> None:
    error = refused(parameters)
    assert error.loc == (*LOC, *where)
    assert message in error.message


def test_a_schema_nested_too_deep_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"properties": {"a": deep}}
    assert "deeper" in refused(deep).message


@pytest.mark.parametrize(
    "dialect",
    [
        None,
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-04/schema#",
    ],
)
def test_the_usual_versions_of_json_schema_are_understood(dialect: str | None) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}} | ({"$schema": dialect} if dialect else {})
    check_schema(schema, LOC)
    assert settled(schema, None, {"a": 1}) == {"a": 1}
    assert "integer" in reason(schema, None, {"a": "x"})
    assert "no such name" in reason(schema, None, {"b": 1})


def test_names_of_earlier_versions_dependencies_and_positions_count() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "a": True,
            "pair": {"items": [{"properties": {"x": {}}}, True], "additionalItems": {"properties": {"y": {}}}},
        },
        "dependencies": {"a": {"properties": {"b": {"type": "integer"}}}, "b": ["a"]},
    }
    check_schema(schema, LOC)
    value = {"a": {"any": 1}, "b": 2, "pair": [{"x": 1}, {"any": 1}, {"y": 1}]}
    assert settled(schema, None, value) == value
    assert "b: 'x' is not of type 'integer'" in reason(schema, None, {"a": 1, "b": "x"})
    assert "pair[0].y" in reason(schema, None, {"pair": [{"y": 1}]})


def test_a_recursive_schema_is_fine() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    }
    check_schema(tree, LOC)
    assert settled(tree, None, {"children": [{"name": "a"}]}) == {"children": [{"name": "a"}]}
    assert "children[0].size" in reason(tree, None, {"children": [{"size": 1}]})


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"memory_types": [NOTE, NOTE]}, ("memory_types", 1, "name")),
        ({"memory_types": [{"name": "A", "parameters": {"type": "array"}}]}, ("memory_types", 0, "parameters", "type")),
        ({"namespace": ["{user_id}"]}, ("namespace",)),
        ({"namespace": []}, ("namespace",)),
        ({"namespace": ["{user_id:>9}", "{schema}"]}, ("namespace", 0)),
        ({"namespace": ["{user_id!r}", "{schema}"]}, ("namespace", 0)),
        ({"namespace": ["{user}", "{schema}"]}, ("namespace", 0)),
        ({"namespace": ["langgraph", "{schema}"]}, ("namespace", 0)),
        ({"model": "gpt"}, ("model",)),
    ],
)
def test_settings_that_can_t_work_are_refused_by_the_field(settings: Any, where: Any) -> None:
    with pytest.raises(Invalid) as failed:
        checking.check(World(), CaptureSettings.model_validate({"distillation": "schemas"} | settings))
    assert failed.value.loc == ("body", "capture", *where)


def test_settings_that_work_are_taken() -> None:
    world = World()
    world.others["openai/small"] = world.chat
    for settings in ({}, {"model": "openai/small"}, {"namespace": ["memory", "{user_id}-{schema}"]}):
        checking.check(world, CaptureSettings.model_validate({"distillation": "schemas"} | settings))


# --------------------------------------------------------------------------------------------------------------------
# What may be kept


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"status": "asleep"}, "status: 'asleep' is not one of"),
        ({"age": -1}, "age: -1 is less than the minimum"),
        ({"age": "old"}, "age: 'old' is not of type 'integer'"),
        ({"friends": [{}]}, "friends[0]: 'name' is a required property"),
        ({"scores": {"chess": "good"}}, "scores.chess"),
        ([], "must be an object"),
        ({"status": "\ud800"}, "status"),
        ({"extra": {"a": float("nan")}}, "finite"),
    ],
)
def test_enum_minimum_and_all_else_are_enforced(value: Any, message: str) -> None:
    """What trustcall loses: enum and minimum are not enforced."""
    assert message in reason(ADDRESS, None, value)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"shoe_size": 43}, "shoe_size"),
        ({"address": {"zip": "4000"}}, "address.zip"),
        ({"friends": [{"name": "Ana", "age": 3}]}, "friends[0].age"),
    ],
)
def test_a_model_may_add_only_what_the_schema_names(value: Any, where: str) -> None:
    assert f"{where}: the schema has no such name" in reason(ADDRESS, None, value)
    assert where in reason(ADDRESS, {"age": 3}, {"age": 3} | value)


def test_unless_the_schema_says_additional_properties() -> None:
    value = {"extra": {"anything": [1]}, "scores": {"chess": 3}}
    assert settled(ADDRESS, None, value) == value
    free = USER.parameters | {"additionalProperties": True}
    assert settled(free, None, {"shoe_size": 43}) == {"shoe_size": 43}
    texts = USER.parameters | {"additionalProperties": {"type": "string"}}
    assert settled(texts, None, {"shoe": "43"}) == {"shoe": "43"}
    assert "shoe" in reason(texts, None, {"shoe": 43})


@pytest.mark.parametrize("closed", [{}, {"additionalProperties": False}])
def test_unknown_keys_of_a_stored_document_are_kept(closed: dict[str, Any]) -> None:
    """What trustcall loses: unknown keys of a stored document are deleted."""
    schema = ADDRESS | closed
    stored = {"age": 3, "shoe_size": 43, "address": {"city": "Porto", "zip": "4000"}, "friends": [{"name": "Ana", "since": 2020}]}
    kept = stored | {"age": 4}
    assert settled(schema, stored, kept) == kept
    # Taken out, or replaced with the whole: put back.
    assert settled(schema, stored, {"age": 4}) == {"age": 4, "shoe_size": 43, "address": {"zip": "4000"}}
    assert settled(schema, stored, stored | {"address": {"city": "Faro"}})["address"] == {"city": "Faro", "zip": "4000"}
    # A person's element moves with its array.
    moved = stored | {"friends": [{"name": "Eva"}, {"name": "Ana", "since": 2020}]}
    assert settled(schema, stored, moved) == moved


def test_a_model_can_t_change_what_a_person_stored_beyond_the_schema() -> None:
    stored = {"age": 3, "shoe_size": 43}
    assert "shoe_size" in reason(ADDRESS, stored, stored | {"shoe_size": 44})
    assert "must stay" in reason(ADDRESS, {"address": {"zip": "1"}}, {"address": None})


def test_absent_fields_do_not_become_nulls() -> None:
    """What trustcall loses: absent fields become explicit nulls."""
    filled = {"age": None, "status": "free", "partner": None, "address": {"city": None}, "friends": [{"name": "Ana"}]}
    assert settled(ADDRESS, None, filled) == {"status": "free", "address": {}, "friends": [{"name": "Ana"}]}
    assert settled(ADDRESS, {"status": "free"}, {"status": "free", "age": None}) == {"status": "free"}


def test_a_null_that_the_schema_allows_and_an_edit_sets_stays() -> None:
    """Absent is not null."""
    assert settled(ADDRESS, {"partner": "Eva"}, {"partner": None}) == {"partner": None}
    assert settled(ADDRESS, {"partner": None}, {"partner": None, "age": 3}) == {"partner": None, "age": 3}


def test_a_required_null_is_not_taken_out_silently() -> None:
    assert "'context' is a required property" in reason(NOTE.parameters, None, {"context": None, "content": "x"})


def test_what_was_not_valid_before_does_not_stand_in_the_way() -> None:
    stored = {"age": "old", "partner": 3}
    assert settled(ADDRESS, stored, stored | {"status": "free"}) == stored | {"status": "free"}
    assert "status" in reason(ADDRESS, stored, stored | {"status": "asleep"})


def test_names_of_combined_schemas_count() -> None:
    schema = {
        "type": "object",
        "allOf": [{"properties": {"a": {"type": "integer"}}}, {"$ref": "#/$defs/B"}],
        "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        "then": {"properties": {"c": {"type": "string"}}},
        "patternProperties": {"^x-": {"type": "integer"}},
        "$defs": {"B": {"properties": {"b": {"type": "object", "properties": {"d": {"type": "integer"}}}}}},
    }
    check_schema(schema, LOC)
    value = {"a": 1, "b": {"d": 2}, "c": "x", "x-y": 3}
    assert settled(schema, None, value) == value
    assert "e: the schema has no such name" in reason(schema, None, value | {"e": 1})
    assert "b.e" in reason(schema, None, {"b": {"e": 1}})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "name", "zip", "city"]), inner, max_size=3),
    max_leaves=5,
)
DOCUMENT = st.dictionaries(st.sampled_from([*ADDRESS["properties"], "shoe", "hat"]), JSON, max_size=5)


@given(DOCUMENT, DOCUMENT)
def test_nothing_a_person_stored_at_the_top_is_ever_lost(before: Any, after: Any) -> None:
    untouched = copy.deepcopy(before)
    try:
        kept = settled(ADDRESS, before, after)
    except Unfit:
        return
    finally:
        assert before == untouched
    assert {name: before[name] for name in ("shoe", "hat") if name in before} == {
        name: kept[name] for name in ("shoe", "hat") if name in kept
    }
    assert settled(ADDRESS, before, kept) == kept


@given(DOCUMENT)
def test_a_document_that_is_not_changed_may_stay_as_it_is(document: Any) -> None:
    assert settled(ADDRESS, document, document) == document
