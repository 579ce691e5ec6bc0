"""What an evaluation case may say, and when documents are as it expects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples.evaluation.case import Case, Expectation, WrongCase, read, read_all
from examples.evaluation.judging import complaints

SHIPPED = Path(__file__).parents[2] / "examples" / "evaluation"
BOB, ROBERT = {"user_name": "Bob", "interests": ["chess"]}, {"user_name": "Robert", "interests": ["chess", "Jazz"]}


def told(*documents: Any, **wanted: Any) -> list[str]:
    return list(complaints(Expectation.model_validate(wanted), documents))


@pytest.mark.parametrize(
    ("wanted", "right", "wrong"),
    [
        ({"count": 1}, [BOB], []),
        ({"count": 1}, [BOB], [BOB, BOB]),
        ({"count": 0}, [], [{}]),
        ({"empty": True}, [], [BOB]),
        ({"empty": True}, [{}, {"user_name": None, "interests": [], "home": ""}], [{"age": 0}]),
        ({"lacks": ["bob"]}, [ROBERT], [BOB]),
        ({"documents": [{"has": {"user_name": "Bob"}}]}, [ROBERT, BOB], [ROBERT]),
        ({"documents": [{"has": {"user_name": "Bob"}}]}, [BOB], [{"user_name": "bob"}]),
        ({"documents": [{"has": {"user_name": "Bob"}}]}, [BOB], []),
        ({"documents": [{"has": {"home.city": "Rome"}}]}, [{"home": {"city": "Rome"}}], [{"home": "Rome"}]),
        ({"documents": [{"has": {"interests.1": "Jazz"}}]}, [ROBERT], [BOB]),
        ({"documents": [{"has": {"age": 1}}]}, [{"age": 1}], [{"age": True}]),
        ({"documents": [{"contains": ["jazz", "CHESS"]}]}, [ROBERT], [BOB]),
        ({"documents": [{"contains": ["user_name"]}]}, [{"x": "user_name"}], [BOB]),
        ({"documents": [{"contains": ["chess"]}, {"contains": ["jazz"]}]}, [BOB, ROBERT], [ROBERT]),
        # The first could have either document, and has to leave the one that the second needs.
        ({"documents": [{"contains": ["chess"]}, {"contains": ["jazz"]}]}, [ROBERT, BOB], [BOB, BOB]),
    ],
)
def test_right_and_wrong(wanted: dict[str, Any], right: list[Any], wrong: list[Any]) -> None:
    assert told(*right, **wanted) == []
    [complaint] = told(*wrong, **wanted)
    assert complaint


def test_a_complaint_shows_what_is_there() -> None:
    assert told(BOB, count=2) == ['1 documents instead of 2: [{"user_name": "Bob", "interests": ["chess"]}]']
    [one] = told(BOB, documents=[{"has": {"user_name": "Robert"}, "contains": ["tea"]}])
    assert one.startswith("no document of its own for user_name = \"Robert\", 'tea': ")


def test_the_shipped_cases() -> None:
    cases = {case.name: case for case in read_all(SHIPPED)}
    assert {"profile", "another_user", "friends"} <= set(cases)
    assert all(case.about and len(case.talk) == 2 for case in cases.values())


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    case = read(SHIPPED / "friends.toml")
    (tmp_path / "friends.json").write_text(case.model_dump_json())
    assert read(tmp_path / "friends.json") == case
    assert read_all(tmp_path) == [case]
    assert isinstance(case, Case)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.toml", "talk = [", "a.toml"),
        ("a.toml", "about = 'x'", "talk: Field required"),
        ("a.toml", "[[talk]]\nuser='x'\nmessages=[{user='hi'}]", "expects nothing"),
        ("a.toml", "[[talk]]\nuser='x'\nmessages=[]\nexpect=[{count=1}]", "talk.0.messages"),
        ("a.toml", "[[talk]]\nuser='x'\nmessages=[{user='hi', assistant='ho'}]\nexpect=[{count=1}]", "talk.0.messages.0"),
        ("a.toml", "[[talk]]\nuser='x'\nmessages=[{user='hi'}]\nexpect=[{cuont=1}]", "cuont"),
        ("a.json", "[1]", "a.json"),
        ("a.yml", "x", "no case"),
    ],
)
def test_a_file_that_is_no_case_is_told(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(WrongCase, match=reason):
        read_all(tmp_path)
