"""Decisions are watched here as in unit tests."""

from support.watching import decisions_ask_no_clock

__all__ = ["decisions_ask_no_clock"]
