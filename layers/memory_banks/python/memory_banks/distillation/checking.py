"""Whether capture settings can work: said when they are set, not when the first run is distilled."""

from __future__ import annotations

from string import Formatter

from ..capture.settings import CaptureSettings
from ..errors import Invalid
from ..ports import Ports, UnknownModel
from . import memory_types

PLACES = ("user_id", "schema")
"""What a namespace template may name."""


def check(ports: Ports, settings: CaptureSettings) -> None:
    """Raises `Invalid`, which names the field, for a model, a namespace or a memory type that can't be."""
    if settings.model is not None:
        try:
            ports.chat_models(settings.model)
        except UnknownModel as unknown:
            raise Invalid(("body", "capture", "model"), str(unknown), "unknown_model") from None
    for position, label in enumerate(settings.namespace):
        _check_label(label, position)
    if settings.distillation == "schemas" and not settings.namespace:
        raise Invalid(("body", "capture", "namespace"), "must not be empty", "too_short")
    if len(memory_types.of(settings)) > 1 and not any("{schema}" in label for label in settings.namespace):
        raise Invalid(("body", "capture", "namespace"), "must name {schema} where there are several memory types", "namespace")
    memory_types.check(settings.memory_types, ("body", "capture", "memory_types"))


def _check_label(label: str, position: int) -> None:
    loc = ("body", "capture", "namespace", position)
    try:
        parsed = [(name, spec or how) for _, name, spec, how in Formatter().parse(label) if name is not None]
        named = [f"{name} with a format" if formatted else name for name, formatted in parsed]
    except ValueError:
        named = [label]
    if any(name not in PLACES for name in named):
        raise Invalid(loc, "only {user_id} and {schema} can stand in braces", "namespace_label")
    if "." in label or "\0" in label or (position == 0 and label == "langgraph"):
        raise Invalid(loc, "a label has no dot and no NUL, and the first is not langgraph", "namespace_label")
