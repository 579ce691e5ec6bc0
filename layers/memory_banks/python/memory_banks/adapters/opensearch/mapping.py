"""What an index is: its fields and its settings, made from configuration, never by guessing from a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ports import Form
from ...settings import Settings
from ...texts import BM25_B, BM25_K1
from . import terms

ANALYSER = "english"
"""Lucene's English analyser: standard words, lower case, no possessive, no stop words, Porter's stems. Other alphabets
pass through it as words (Han and Hiragana one character a term); the embedded index reads text the same way."""

SIMILARITY = "short_texts"
"""BM25 with parameters for short texts, the same as the embedded index has."""

SHOWN = ["entry", "form", "members", "versions", "previous", "start", "end", "occurred_at"]
"""All that `_source` keeps: what a hit needs. Text and vector are indexed and can't be asked for."""


FORMS: tuple[Form, ...] = ("chunk", "window")

ADDED = {"tokens": {"type": "long"}}
"""Fields that an index made by an earlier version of ours may lack; it is given them before the first write."""

Made = Mapping[str, Any]
"""An index as OpenSearch tells it: `settings` and `mappings`."""

VERSION = 2
"""Of the template; grows with every change of it."""


def text_field(form: Form) -> str:
    """Chunks and windows have fields of their own: one's lengths and frequent words say nothing about the other's."""
    return f"{form}_text"


def vector_field(form: Form) -> str:
    """Chunks and windows have graphs of their own, so neither search wades through the other."""
    return f"{form}_vector"


def template(name: str, dimensions: int, settings: Settings) -> dict[str, Any]:
    """The index template of exactly this index. Whatever creates it, it comes out as meant."""
    return {
        "index_patterns": [name],
        "priority": 500,
        "version": VERSION,
        "template": {"settings": _settings(settings), "mappings": _mappings(dimensions, settings)},
        "_meta": {"description": "Memory Banks: chunks and windows of one embedding model"},
    }


def lacks(made: Made) -> bool:
    """Whether an index is without fields that it can be given."""
    return not ADDED.keys() <= _properties(made).keys()


def differences(made: Made, settings: Settings) -> list[str]:
    """How an index differs from one made today, in what can't be changed any more."""
    found = []
    similarity = made.get("settings", {}).get("index", {}).get("similarity", {}).get(SIMILARITY, {})
    parameters = [float(similarity.get(name, "nan")) for name in ("k1", "b")]
    named = {_properties(made).get(text_field(form), {}).get("similarity") for form in FORMS}
    if parameters != [BM25_K1, BM25_B] or named != {SIMILARITY}:
        found.append("words are scored by another BM25 than that for short texts")
    engines = {_properties(made).get(vector_field(form), {}).get("method", {}).get("engine") for form in FORMS}
    if engines != {settings.opensearch_engine}:
        found.append(f"its vectors are in {', '.join(sorted(map(str, engines)))}, the setting says {settings.opensearch_engine}")
    return found


def _properties(made: Made) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = made.get("mappings", {}).get("properties", {})
    return properties


def _settings(settings: Settings) -> dict[str, Any]:
    seconds = settings.opensearch_refresh_seconds
    return {
        "index": {
            "knn": True,
            "number_of_shards": settings.opensearch_shards,
            "number_of_replicas": settings.opensearch_replicas,
            "refresh_interval": "-1" if seconds < 0 else f"{round(seconds * 1000)}ms",
            "similarity": {SIMILARITY: {"type": "BM25", "k1": BM25_K1, "b": BM25_B}},
        }
    }


def _mappings(dimensions: int, settings: Settings) -> dict[str, Any]:
    keyword = {"type": "keyword"}
    number = {"type": "long"}
    shown_only = {"index": False, "doc_values": False}
    vector = {"type": "knn_vector", "dimension": dimensions, "method": _method(settings)}
    # No positions: no phrase can be read back.
    text = {"type": "text", "analyzer": ANALYSER, "similarity": SIMILARITY, "index_options": "freqs"}
    return {
        "dynamic": "strict",
        "_routing": {"required": True},
        "_source": {"includes": SHOWN},
        "properties": {
            "bank": keyword,
            "generation": number,
            "partition": keyword,
            "place": keyword,
            "entry": keyword | {"index": False},
            "form": keyword,
            "kind": keyword,
            "members": keyword,
            "versions": number | shown_only,
            "previous": keyword | shown_only,
            "start": number | shown_only,
            "end": number | shown_only,
            "speaker": keyword,
            "tags": keyword,
            terms.TERMS: keyword,
            terms.PATHS: keyword,
            "occurred_at": number,
            "created_at": number,
            **ADDED,
            text_field("chunk"): text,
            text_field("window"): text,
            vector_field("chunk"): vector,
            vector_field("window"): vector,
        },
    }


def _method(settings: Settings) -> dict[str, Any]:
    faiss = settings.opensearch_engine == "faiss"
    parameters = {"m": settings.opensearch_m, "ef_construction": settings.opensearch_ef_construction}
    return {
        "name": "hnsw",
        "engine": settings.opensearch_engine,
        # Vectors are of unit length, so the inner product is the cosine; faiss has that on every version.
        "space_type": "innerproduct" if faiss else "cosinesimil",
        "parameters": parameters,
    }
