"""Typical files of Kafka's brokers, and all keys that those have."""

from pathlib import Path

FOLDER = Path(__file__).parent


def typical(name: str, **values: str) -> str:
    """The text of a file. `values`: what stands for its @NAMES@, in lower case; else those stay."""
    text = (FOLDER / f"{name}.properties").read_text()
    for word, value in values.items():
        text = text.replace(f"@{word.upper()}@", value)
    return text
