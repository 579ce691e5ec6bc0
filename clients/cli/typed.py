"""Kinds of option values, refused with a sentence when they are wrong."""

from __future__ import annotations

import argparse


def port(text: str) -> int:
    """A TCP port; 0 stands for a free one."""
    if not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)


def api_key(text: str) -> str:
    """A key as a header can carry it."""
    if not text or not all("!" <= character <= "~" for character in text):
        raise argparse.ArgumentTypeError("a key has letters, digits and signs of ASCII, and no spaces")
    return text


def seconds(text: str) -> float:
    """A positive number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return number


def count(text: str) -> int:
    """A whole number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)
