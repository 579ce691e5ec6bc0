"""`.env.example` lists every setting with its default, and nothing that is none."""

from __future__ import annotations

import re
from pathlib import Path

from memory_banks.settings import PREFIX, Settings

ELSEWHERE = {
    "EXAMPLES_MODEL",
    "EXAMPLES_BANK",
    "EXAMPLES_IDLE_SECONDS",
    "MEMORY_BANKS_URL",
    "MEMORY_BANKS_API_KEY",
    "MEMORY_BANKS_LOCOMO",
    "OPENSEARCH_URL",
    "AWS_PROFILE",
    "AWS_REGION",
}
"""What the command line, the examples, the benchmarks and AWS's own libraries read."""

LISTED = dict(re.findall(r"^# ([A-Z_]+)=(.*)$", (Path(__file__).parents[2] / ".env.example").read_text(), re.MULTILINE))


def test_every_setting_is_listed_and_nothing_else() -> None:
    assert LISTED.keys() - ELSEWHERE == {PREFIX + name.upper() for name in Settings.model_fields}
    assert LISTED.keys() >= ELSEWHERE


def test_the_listed_values_are_the_defaults() -> None:
    assert Settings.from_environment(LISTED) == Settings()
