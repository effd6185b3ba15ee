"""`python case.py MODULE OUT WORK KAFKA KAFKA_LOGS quick|whole`: runs one case and writes what it measured to OUT."""

import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from bench import Bench  # noqa: E402 - found by the path above


def main(module: str, out: str, work: str, kafka: str, kafka_logs: str, size: str) -> None:
    """Run the case."""
    measures = importlib.import_module(module).run(Bench(Path(work), kafka, Path(kafka_logs), size == "quick"))
    Path(out).write_text(json.dumps([measure.as_json() for measure in measures]), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
