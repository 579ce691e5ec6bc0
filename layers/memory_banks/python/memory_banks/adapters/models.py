"""Chooses the model adapter by the provider in `provider/model-name`; each is imported only when it is asked for."""

from __future__ import annotations

import threading

from ..ports import ChatModel, Embedder, Reranker, UnknownModel
from ..settings import Settings
from .embedded import embedder as embedded

TITAN_DIMENSIONS = (256, 512, 1024)
EMBEDDING_MODELS = f"{embedded.MODEL}, bedrock/amazon.titan-embed-text-v2:0, openai/MODEL"
CHAT_MODELS = "embedded/extractive, bedrock/MODEL_ID, anthropic/MODEL (through Bedrock), openai/MODEL"

RERANK_MODELS = "bedrock/amazon.rerank-v1:0, bedrock/cohere.rerank-v3-5:0, bedrock/ARN, openai/MODEL"


class ModelEmbedders:
    """The embedder of a model and size, built once; building one calls nothing. Safe to share by threads.

    Everything raises `UnknownModel` for a model that no provider has, or a size that the model can't give.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._built: dict[tuple[str, int], Embedder] = {}
        self._sizes: dict[str, tuple[int, ...]] = {}
        self._lock = threading.Lock()

    @property
    def default(self) -> str:
        """The embedding model of new banks."""
        return self._settings.embedding_model

    def sizes(self, model: str) -> tuple[int, ...]:
        """The dimensions a model can give, smallest first.

        For `openai/…` it is the setting `embedding_dimensions`, or else what the endpoint answers to one short text, asked
        once: raises `ModelUnavailable` when it can't be asked.
        """
        if model not in self._sizes:
            self._sizes[model] = self._find_sizes(model)
        return self._sizes[model]

    def __call__(self, model: str, dimensions: int) -> Embedder:
        with self._lock:
            if (model, dimensions) not in self._built:
                self._built[model, dimensions] = self._build(model, dimensions)
            return self._built[model, dimensions]

    def _find_sizes(self, model: str) -> tuple[int, ...]:
        provider, name = _split(model, EMBEDDING_MODELS)
        if model == embedded.MODEL:
            return (embedded.DIMENSIONS,)
        # An ARN (an inference profile, a provisioned model) does not tell its model: taken at the operator's word.
        if provider == "bedrock" and (name.startswith("arn:") or "titan-embed-text-v2" in name):
            return TITAN_DIMENSIONS
        if provider == "openai":
            from .openai_compatible import endpoint, native_dimensions

            return (self._settings.embedding_dimensions or native_dimensions(endpoint(self._settings), name),)
        raise _unknown(model, EMBEDDING_MODELS)

    def _build(self, model: str, dimensions: int) -> Embedder:
        provider, name = _split(model, EMBEDDING_MODELS)
        if provider == "openai":
            # Its size is not checked here: that may need the network, and the embedder checks each vector anyway.
            from .openai_compatible import OpenAIEmbedder, endpoint

            return OpenAIEmbedder(endpoint(self._settings), name, dimensions)
        if dimensions not in self.sizes(model):
            sizes = " or ".join(str(size) for size in self.sizes(model))
            raise UnknownModel(f"{model} gives vectors of {sizes} dimensions, not {dimensions}.")
        if provider == "bedrock":
            from .bedrock import TitanEmbedder

            return TitanEmbedder(name, dimensions)
        return embedded.SentenceEncoder()


def embedders(settings: Settings) -> ModelEmbedders:
    """All embedders that the settings reach."""
    return ModelEmbedders(settings)


class NamedChatModels:
    """The chat model of a name, built once; building one calls nothing. Safe to share by threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._built: dict[str, ChatModel] = {}
        self._lock = threading.Lock()

    def __call__(self, model: str | None) -> ChatModel:
        """The model of this name, None for that of the settings. Raises `UnknownModel` for one that no provider has."""
        name = self._settings.chat_model if model is None else model
        with self._lock:
            if name not in self._built:
                self._built[name] = chat_model(self._settings, name)
            return self._built[name]


def chat_models(settings: Settings) -> NamedChatModels:
    """All chat models that the settings reach."""
    return NamedChatModels(settings)


def chat_model(settings: Settings, model: str | None = None) -> ChatModel:
    """A chat model, that of the settings if none is named; building it calls nothing. Raises `UnknownModel` for one that no
    provider has. Every model takes the window of the settings.
    """
    model = settings.chat_model if model is None else model
    provider, name = _split(model, CHAT_MODELS)
    match provider:
        case "embedded" if name == "extractive":
            from .embedded.summariser import ExtractiveSummariser

            return ExtractiveSummariser(settings.chat_window)
        case "bedrock" | "anthropic":
            from .bedrock import BedrockChat

            return BedrockChat(model, window=settings.chat_window)
        case "openai":
            from .openai_compatible import OpenAIChat, endpoint

            return OpenAIChat(endpoint(settings), name, window=settings.chat_window)
        case _:
            raise _unknown(model, CHAT_MODELS)


def reranker(settings: Settings) -> Reranker | None:
    """The reranker of the settings, None when they name none; building it calls nothing. Raises `UnknownModel`."""
    if settings.rerank_model is None:
        return None
    provider, name = _split(settings.rerank_model, RERANK_MODELS)
    match provider:
        case "bedrock":
            from .bedrock_rerank import BedrockReranker

            return BedrockReranker(name)
        case "openai":
            from .rerank_endpoint import EndpointReranker, endpoint

            return EndpointReranker(endpoint(settings), name)
        case _:
            raise _unknown(settings.rerank_model, RERANK_MODELS)


def _split(model: str, allowed: str) -> tuple[str, str]:
    provider, slash, name = model.partition("/")
    if not slash or not name:
        raise _unknown(model, allowed)
    return provider, name


def _unknown(model: str, allowed: str) -> UnknownModel:
    return UnknownModel(f"Unknown model {model!r}: write provider/model-name, one of {allowed}.")
