"""Lines of CloudWatch's Embedded Metric Format."""

from __future__ import annotations

import io
import json

import pytest
from memory_banks.adapters.metrics import EmfMetrics

from tests.doubles.clock import START, ManualClock


def test_a_count_is_one_line_of_the_documented_format(clock: ManualClock) -> None:
    stream = io.StringIO()
    metrics = EmfMetrics(stream, clock)
    metrics.count("CompactionFailed", 2, reason="refusal", bank_type="conversation")
    metrics.count("Swept")
    first, second = stream.getvalue().splitlines()
    assert json.loads(first) == {
        "_aws": {
            "Timestamp": START,
            "CloudWatchMetrics": [
                {
                    "Namespace": "MemoryBanks",
                    "Dimensions": [["bank_type", "reason"]],
                    "Metrics": [{"Name": "CompactionFailed", "Unit": "Count"}],
                }
            ],
        },
        "reason": "refusal",
        "bank_type": "conversation",
        "CompactionFailed": 2,
    }
    assert json.loads(second)["Swept"] == 1
    assert json.loads(second)["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [[]]


def test_a_dimension_with_a_line_break_stays_one_line(clock: ManualClock) -> None:
    stream = io.StringIO()
    EmfMetrics(stream, clock).count("Failed", reason="two\nlines \N{LINE SEPARATOR}")
    assert len(stream.getvalue().splitlines()) == 1


def test_lines_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    EmfMetrics().count("Swept", 3)
    assert json.loads(capsys.readouterr().out)["Swept"] == 3
