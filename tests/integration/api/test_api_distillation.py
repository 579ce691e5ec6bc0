"""Settings of distillation that can't work are refused when they are set, by the field."""

from __future__ import annotations

from typing import Any

import pytest

WRONG: list[tuple[dict[str, Any], list[Any]]] = [
    ({"model": "gpt"}, ["model"]),
    ({"kill_phrase": " "}, ["kill_phrase"]),
    ({"distillation": "schemas", "namespace": ["{user_id}"]}, ["namespace"]),
    (
        {"memory_types": [{"name": "A", "parameters": {"properties": {"a": {"type": "strin"}}}}]},
        ["memory_types", 0, "parameters", "properties", "a", "type"],
    ),
]


@pytest.mark.parametrize(("capture", "where"), WRONG)
def test_what_can_t_work_is_a_422_at_creation_and_at_a_change(api: Any, capture: Any, where: Any) -> None:
    made = api("POST", "/memory_banks", body={"name": "wrong", "capture": capture})
    bank = api.bank(capture={})
    changed = api("PUT", f"/memory_banks/{bank}", body={"capture": capture})
    for reply in (made, changed):
        assert reply.status == 422, reply
        assert reply.json["detail"][0]["loc"] == ["body", "capture", *where]


def test_memory_types_come_back_as_they_were_given(api: Any) -> None:
    given = {"name": "Diet", "parameters": {"type": "object", "properties": {"style": {"enum": ["vegan", "all"]}}}}
    bank = api.bank(capture={"distillation": "schemas", "memory_types": [given]})
    [shown] = api("GET", f"/memory_banks/{bank}").json["capture"]["memory_types"]
    assert shown == given | {"description": "", "system_prompt": "", "update_mode": "patch"}
