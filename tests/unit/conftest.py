"""The pure parts of the benchmarks are tested, too; and decisions are watched."""

import sys
from pathlib import Path

from support.watching import decisions_ask_no_clock

__all__ = ["decisions_ask_no_clock"]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "peers")]
