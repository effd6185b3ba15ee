"""How many processes a load needs: the block of docs/brokers.md, of the figures of one core."""

from collections.abc import Mapping
from pathlib import Path

import report
from peer import TIDELOG
from results import Results
from table import amount, quantity, setting

BLOCK = "peers-sizing"
_PRODUCE, _CONSUME, _PROCESSES = "broker core produce", "broker core consume", "broker core processes"
_BATCHES = ("1,000", "100", "10", "1")
_CONSUMED = ("hot", "cold", "cold, from segments")
_CODECS = {"none": "not packed", "lz4": "packed by lz4"}
_PROCESSOR_TIME, _MEMORY, _IDLE = "processor time", "memory of the process", "idle"
_IDLE_PROCESSES = f"{TIDELOG} 8 processes"


def block(results: Results) -> str:
    """Records a second of one core by the size of batches, and the memory; "" where that was not measured."""
    found = {(one.case, one.system, one.metric): one.median for one in results.measures}
    us = {(records, codec): _us(found, records, codec) for records in _BATCHES for codec in _CODECS}
    if not any(us.values()):
        return ""
    rows = [
        f"| records of 100 B a batch | {' | '.join(_CODECS.values())} |",
        "|---|---|---|",
        *(f"| {records} | {' | '.join(_rate(us[records, codec]) for codec in _CODECS)} |" for records in _BATCHES),
    ]
    said = []
    hot, cold, segments = (found.get((_CONSUME, f"{TIDELOG} {kind}", _PROCESSOR_TIME)) for kind in _CONSUMED)
    if hot and cold and segments:
        said.append(
            f"Consumers get {_rate(hot)} of a core from its cache, {_rate(cold)} from files of batches, and"
            f" {_rate(segments)} from segments."
        )
    if memory := found.get((_PRODUCE, TIDELOG, _MEMORY)):
        said.append(f"The process had {amount(memory, 'MiB')} of memory at most.")
    if idle := found.get((_PROCESSES, _IDLE_PROCESSES, _IDLE)):
        said.append(f"Eight processes that have nothing to do take {quantity(idle, '')} of a core together.")
    said.append(f"Measured on {results.days([_PRODUCE])}: {setting(results)}.")
    return "\n".join([*rows, "", *said])


def _us(found: Mapping[tuple[str, str, str], float], records: str, codec: str) -> float | None:
    """Processor time of a record, of four clients."""
    return found.get((_PRODUCE, f"{TIDELOG} {records} {codec} w4", _PROCESSOR_TIME))


def _rate(us: float | None) -> str:
    return "" if us is None else amount(1e6 / us, "records/s")


def write(results: Results, page: Path) -> None:
    """The block into the page, which stays as it is where nothing was measured."""
    if text := block(results):
        report.write_block(page, BLOCK, text)
