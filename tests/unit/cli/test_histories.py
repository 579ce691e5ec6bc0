"""Histories of every form, read into turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clients.cli import importing
from clients.cli.failure import Failure
from clients.cli.histories import chatgpt, exported, jsonl, messages
from clients.cli.histories.turn import Configuration, Piece, Turn, Unreadable, WrongForm


def turns(pieces: list[Piece]) -> list[tuple[Any, Any]]:
    return [(piece.speaker, piece.content) for piece in pieces if isinstance(piece, Turn)]


def reasons(pieces: list[Piece]) -> list[tuple[str, str]]:
    return [(piece.where, piece.reason.partition(":")[0]) for piece in pieces if isinstance(piece, Unreadable)]


class TestJsonLines:
    def test_reads_every_field(self) -> None:
        record = {"content": "a", "speaker": "Maya", "key": "k", "occurred_at": "2026-05-08T13:56:00Z"}
        line = json.dumps(record | {"tags": ["t"], "metadata": {"m": 1}, "id": "i"})

        assert list(jsonl.read([line])) == [Turn("line 1", "a", "Maya", "k", "2026-05-08T13:56:00Z", ["t"], {"m": 1}, "i")]

    def test_knows_the_other_names(self) -> None:
        (turn,) = jsonl.read(['{"text":"a","role":"user","timestamp":1778248560.5}'])

        assert (turn.content, turn.speaker, turn.occurred_at) == ("a", "user", "2026-05-08T13:56:00.500Z")  # type: ignore[union-attr]

    def test_says_which_lines_are_none(self) -> None:
        pieces = list(jsonl.read(["", "{", "[1]", '{"content":"a"}', "  \r", "[" * 100_000]))

        assert turns(pieces) == [(None, "a")]
        assert reasons(pieces) == [("line 2", "no JSON"), ("line 3", "no JSON object"), ("line 6", "no JSON")]

    def test_leaves_wrong_values_to_the_service(self) -> None:
        (turn,) = jsonl.read(['{"content":5,"speaker":["x"],"timestamp":1e300}'])

        assert isinstance(turn, Turn)
        assert (turn.content, turn.speaker, turn.occurred_at) == (5, ["x"], "1e+300")


class TestMessages:
    def test_reads_an_array_or_an_object_that_holds_it(self) -> None:
        array = [{"role": "user", "content": "a"}, {"role": "assistant", "name": "Kim", "content": "b"}]

        assert turns(list(messages.read(array))) == turns(list(messages.read({"messages": array}))) == [("user", "a"), ("Kim", "b")]

    def test_takes_the_texts_of_parts(self) -> None:
        parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, "b"]

        assert turns(list(messages.read([{"role": "user", "content": parts}]))) == [("user", "a\nb")]

    def test_says_what_has_no_text(self) -> None:
        pieces = list(
            messages.read([{"role": "assistant", "content": None, "tool_calls": []}, "x", {"role": "user", "content": "a"}])
        )

        assert turns(pieces) == [("user", "a")]
        assert reasons(pieces) == [("message 1", "no text"), ("message 2", "no JSON object")]

    @pytest.mark.parametrize("document", [{}, "x", {"messages": {}}, None, 5])
    def test_refuses_another_form(self, document: Any) -> None:
        with pytest.raises(WrongForm):
            list(messages.read(document))


def message(role: str, text: Any, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text] if isinstance(text, str) else text}
    return {"id": more.pop("id", text), "author": {"role": role}, "create_time": 1778248560.0, "content": content} | more


def conversation(*branch: dict[str, Any] | None, current: int | None = None, **more: Any) -> dict[str, Any]:
    nodes = {
        str(number): {
            "id": str(number),
            "message": one,
            "parent": str(number - 1) if number else None,
            "children": [str(number + 1)] if number + 1 < len(branch) else [],
        }
        for number, one in enumerate(branch)
    }
    return {
        "title": "Trip",
        "conversation_id": "c1",
        "mapping": nodes,
        "current_node": str(current if current is not None else len(branch) - 1),
    } | more


class TestChatGpt:
    def test_reads_the_talk_of_each_conversation_under_its_own_key(self) -> None:
        first = conversation(None, message("user", "a"), message("assistant", "b"))
        second = conversation(message("user", "c"), conversation_id="c2")
        pieces = list(chatgpt.read([first, second]))

        assert [(piece.key, piece.speaker, piece.content) for piece in pieces if isinstance(piece, Turn)] == [
            ("c1", "user", "a"),
            ("c1", "assistant", "b"),
            ("c2", "user", "c"),
        ]
        assert pieces[0].occurred_at == "2026-05-08T13:56:00.000Z"  # type: ignore[union-attr]

    def test_follows_the_branch_that_its_owner_sees(self) -> None:
        tree = conversation(message("user", "question"), message("assistant", "old answer"))
        tree["mapping"]["new"] = {"message": message("assistant", "new answer"), "parent": "0", "children": []}
        tree["current_node"] = "new"

        assert turns(list(chatgpt.read([tree]))) == [("user", "question"), ("assistant", "new answer")]

    def test_takes_the_newest_branch_when_no_current_one_is_named(self) -> None:
        tree = conversation(message("user", "question"), message("assistant", "old answer"), current_node=None)
        newer = message("assistant", "new answer", create_time=1778249999.0)
        tree["mapping"]["new"] = {"message": newer, "parent": "0", "children": []}

        assert turns(list(chatgpt.read([tree]))) == [("user", "question"), ("assistant", "new answer")]

    def test_passes_over_what_is_no_talk(self) -> None:
        tree = conversation(
            message("system", "be nice"),
            message("user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
            message("assistant", "search()", recipient="browser"),
            message("tool", "result"),
            message("assistant", "code", content={"content_type": "code", "text": "1+1"}),
            message("user", "   "),
            message("user", [{"content_type": "image_asset_pointer"}, "look at this"], id="m", content_type="multimodal_text"),
        )

        assert turns(list(chatgpt.read([tree]))) == [("user", "look at this")]

    def test_a_circle_ends(self) -> None:
        tree = conversation(message("user", "a"), message("user", "b"))
        tree["mapping"]["0"]["parent"] = "1"

        assert len(list(chatgpt.read([tree]))) == 2

    def test_says_what_is_no_message(self) -> None:
        tree = conversation(message("user", "a"), {"author": "x", "content": 5})

        assert reasons(list(chatgpt.read([tree]))) == [("'Trip', message 2", "not a message as ChatGPT exports them")]

    @pytest.mark.parametrize("document", [[{"role": "user"}], {}, ["x"], [{"mapping": []}]])
    def test_refuses_another_form(self, document: Any) -> None:
        with pytest.raises(WrongForm):
            list(chatgpt.read(document))


class TestFile:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ('{"content":"a","speaker":"s"}\n{"content":"b","speaker":"t"}\n', [("s", "a"), ("t", "b")]),
            ('{"content":"a","speaker":"s"}', [("s", "a")]),
            ('[{"role":"user","content":"a"}]', [("user", "a")]),
            ('{"messages":[{"role":"user","content":"a"}]}', [("user", "a")]),
            (json.dumps([conversation(message("user", "a"))]), [("user", "a")]),
            ("\ufeff" + '{"content":"a"}', [(None, "a")]),
            ("[]", []),
            ("", []),
        ],
        ids=["lines", "one line", "array", "object", "chatgpt", "byte order mark", "no message", "nothing"],
    )
    def test_the_form_is_recognised(self, tmp_path: Path, text: str, expected: list[tuple[Any, Any]]) -> None:
        (tmp_path / "file").write_text(text)

        assert turns(list(importing.read(tmp_path / "file", None))) == expected

    @pytest.mark.parametrize(
        ("form", "text"), [("messages", "{"), ("chatgpt", "[" * 100_000), ("chatgpt", "[1]"), ("messages", "{}")]
    )
    def test_a_file_of_another_form_is_refused(self, tmp_path: Path, form: str, text: str) -> None:
        (tmp_path / "file").write_text(text)

        with pytest.raises(Failure, match="file"):
            list(importing.read(tmp_path / "file", form))

    def test_a_file_that_is_not_there_or_no_text_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")

        for name in ("absent", "binary"):
            with pytest.raises(Failure, match=name):
                list(importing.read(tmp_path / name, None))


class TestExports:
    ENTRY = {"id": "mine", "key": "k", "kind": "entry", "speaker": "user", "content": "c", "tags": ["t"], "metadata": {"a": 1}}  # noqa: RUF012
    ENTRY |= {"occurred_at": "2026-05-08T13:56:00.000Z", "created_at": "2026-05-09T00:00:00.000Z", "tokens": 1, "version": 2}

    def export(self, *entries: Any, **configuration: Any) -> dict[str, Any]:
        about = {"configuration": {"name": "b", "type": "general", "mode": "balanced", "dimensions": 512} | configuration}
        return {"export_type": "memory_bank", "memory_bank": about, "entries": list(entries)}

    def test_reads_every_field(self) -> None:
        (_, turn) = exported.read(self.export(self.ENTRY))

        assert turn == Turn("entry 1", "c", "user", "k", "2026-05-08T13:56:00.000Z", ["t"], {"a": 1}, "mine")

    def test_takes_the_settings_that_a_bank_is_made_with(self) -> None:
        (made,) = exported.read(self.export(id="x", created_at="y", max_turns=5, retention_days=None, description=None))

        settings = {"name": "b", "type": "general", "mode": "balanced", "max_turns": 5, "retention_days": None}
        assert made == Configuration(settings)

    def test_takes_chunks_and_model_of_a_custom_bank(self) -> None:
        (made,) = exported.read(self.export(mode="custom", embedding_model="m/n", chunk_size=100, chunk_overlap=0))

        assert isinstance(made, Configuration)
        assert (made.settings["dimensions"], made.settings["chunk_size"], made.settings["chunk_overlap"]) == (512, 100, 0)

    def test_an_age_limit_of_older_data_is_migrated(self) -> None:
        (made,) = exported.read(self.export(max_age_days=60, retention_days=30))

        assert isinstance(made, Configuration)
        assert (made.settings["max_age_days"], made.settings["brought_in"]) == (60, True)

    def test_the_configuration_may_be_bare(self) -> None:
        (made,) = exported.read({"export_type": "memory_bank", "memory_bank": {"name": "b"}, "entries": []})

        assert made == Configuration({"name": "b", "retention_days": None})

    def test_a_summary_comes_as_an_entry_and_our_ids_only_tell_entries_apart(self) -> None:
        id = "01M3" + "0" * 48 + "S"
        (_, turn) = exported.read(self.export(self.ENTRY | {"id": id, "kind": "summary", "tags": ["compaction-summary"]}))

        assert isinstance(turn, Turn)
        assert (turn.speaker, turn.tags, turn.id, turn.source_id) == ("system", ["summary"], None, id)

    def test_says_what_is_no_entry_and_what_no_export(self, tmp_path: Path) -> None:
        pieces = list(exported.read(self.export("x", self.ENTRY)))

        assert reasons(pieces) == [("entry 1", "no JSON object")]
        for document in ([], {}, {"entries": []}, {"entries": [], "memory_bank": {"configuration": 1}}):
            with pytest.raises(WrongForm):
                list(exported.read(document))
        file = tmp_path / "export.json"
        file.write_text(json.dumps(self.export(self.ENTRY)))
        assert [type(piece) for piece in importing.read(file, None)] == [Configuration, Turn]
