"""Metadata as terms: what the clauses let through is what `metadata.holds` says, for any metadata."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from memory_banks import metadata
from memory_banks.adapters.opensearch import terms
from memory_banks.ports import MetadataTest

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
names = st.text(st.sampled_from("ab./0Z"), min_size=1, max_size=3)
integers = st.integers(-(2**53), 2**53)
numbers = integers | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6)
documents = st.dictionaries(names, values, max_size=4)
paths = names | st.builds(lambda a, b: f"{a}.{b}", names, names)
tests = st.one_of(
    st.builds(MetadataTest, paths, st.just("exists"), st.booleans()),
    st.builds(MetadataTest, paths, st.just("eq"), st.booleans() | numbers | texts),
    st.builds(MetadataTest, paths, st.just("in"), st.lists(st.booleans() | numbers | texts, max_size=3)),
    st.builds(MetadataTest, paths, st.sampled_from(["gt", "gte", "lt", "lte"]), st.booleans() | numbers | texts),
)


def passes(clause: dict[str, Any], fields: dict[str, list[str]]) -> bool:
    """What OpenSearch does with these clauses: terms compare as UTF-8 bytes."""
    ((kind, inner),) = clause.items()
    if kind == "match_none":
        return False
    if kind == "bool":
        if "must_not" in inner:
            return not passes(inner["must_not"], fields)
        return any(passes(one, fields) for one in inner["should"])
    ((field, wanted),) = inner.items()
    has = [term.encode() for term in fields[field]]
    if kind == "term":
        return wanted.encode() in has
    if kind == "terms":
        return any(one.encode() in has for one in wanted)
    assert kind == "range"
    compare = {
        "gt": lambda a, b: a > b,
        "gte": lambda a, b: a >= b,
        "lt": lambda a, b: a < b,
        "lte": lambda a, b: a <= b,
    }
    return any(all(compare[name](term, bound.encode()) for name, bound in wanted.items()) for term in has)


@given(documents, tests)
@example({"a": 1}, MetadataTest("a", "eq", 1.0))
@example({"a": True}, MetadataTest("a", "eq", 1))
@example({"a": 1}, MetadataTest("a", "eq", True))
@example({"a": "1"}, MetadataTest("a", "eq", 1))
@example({"a": -0.0}, MetadataTest("a", "gte", 0))
@example({"a": [1, 9]}, MetadataTest("a", "gt", 5))
@example({"a": "b"}, MetadataTest("a", "lt", 5))
@example({"a": {"b": 1}}, MetadataTest("a", "exists", True))
@example({"ab": 1}, MetadataTest("a", "exists", True))
@example({"a": 2**53 + 1}, MetadataTest("a", "eq", 2**53))
@example({"a": 10**400}, MetadataTest("a", "gt", 1e308))
@example({"a": None}, MetadataTest("a", "exists", False))
def test_clauses_let_through_what_the_contract_says(document: dict[str, Any], test: MetadataTest) -> None:
    expected = metadata.holds(test, list(metadata.leaves(document)))
    assert passes(terms.clause(test), terms.indexed(document)) is expected


def test_no_metadata_however_wide_adds_a_field() -> None:
    fields = terms.indexed({f"path{n}": {"deep": n} for n in range(1_000)})
    assert set(fields) == {terms.TERMS, terms.PATHS}
    assert len(fields[terms.PATHS]) == 1_000
