"""PostgreSQL's changes into a topic, by the connector in a Connect worker, beside pg_recvlogical into a file."""

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from figures import Row, percentile, speed_ratio
from plan import Plan

import tidelog

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from support.postgres import USER, running_postgres  # type: ignore[import-not-found]

_TABLE = """
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer int NOT NULL, state text NOT NULL, amount numeric(12, 2) NOT NULL,
    placed timestamptz NOT NULL, paid boolean NOT NULL, weight double precision, note text);
CREATE PUBLICATION changes FOR TABLE orders;
SELECT pg_create_logical_replication_slot('origin', 'pgoutput');
"""
# Transactions of a hundred rows.
_ROWS = """
DO $$ BEGIN
  FOR part IN 0..{parts} - 1 LOOP
    INSERT INTO orders SELECT 100 * part + n, n, 'placed', n + 0.25, now(), n % 2 = 0, n / 7.0, repeat('note ', 8)
      FROM generate_series(1, 100) n;
    COMMIT;
  END LOOP;
END $$
"""
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_BATCH = 10_000
_LIMIT_S = 300.0


def run(plan: Plan) -> list[Row]:
    """The row. Both read the same changes, which are in the log before, each from a slot of its own."""
    rows = 100_000 if plan.quick else 400_000
    samples: dict[str, list[float]] = {"pg_recvlogical": [], "tidelog": []}
    with running_postgres({"max_wal_size": "8GB"}) as server, _worker(plan.work / "lake") as url:
        server.run(_TABLE)
        server.run(_ROWS.format(parts=rows // 100))
        for number in range(plan.rounds + 1):
            for arm, measure in (("pg_recvlogical", _received), ("tidelog", _sourced)):
                slot = f"{arm}_{number}"
                server.run(f"SELECT pg_copy_logical_replication_slot('origin', '{slot}')")
                took = measure(plan.work, url, server, slot, rows)
                if number:
                    samples[arm].append(took)
                server.run(f"SELECT pg_drop_replication_slot('{slot}')")
    ratio = speed_ratio(samples, "tidelog", "pg_recvlogical")
    rates = {arm: rows / percentile(taken, 50) for arm, taken in samples.items()}
    measured = f"{ratio:.2f}x, {rates['tidelog']:,.0f} rows/s against {rates['pg_recvlogical']:,.0f}"
    figures = {"ratio": ratio, "rows": rows, "s": samples, "batch": _BATCH}
    return [
        Row("PostgreSQL's changes into a topic, against pg_recvlogical", ">= 0.3x", measured, ratio >= 0.3, figures)
    ]


def _received(work: Path, _: str, server: Any, slot: str, __: int) -> float:
    """Seconds that pg_recvlogical takes for all changes."""
    out = work / f"{slot}.bin"
    end = server.run("SELECT pg_current_wal_lsn()").strip()
    command = ["pg_recvlogical", "--start", "--slot", slot, "--endpos", end, "--no-loop", "--file", str(out)]
    command += ["-h", server.host, "-p", str(server.port), "-U", USER, "-d", "postgres"]
    # The newest server's own, where there are several.
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_recvlogical"))
    command[0] = str(programs[-1]) if programs else shutil.which(command[0]) or command[0]
    began = time.perf_counter()
    subprocess.run([*command, "-o", "proto_version=1", "-o", 'publication_names="changes"'], check=True)
    took = time.perf_counter() - began
    out.unlink()
    return took


def _sourced(work: Path, url: str, server: Any, slot: str, rows: int) -> float:
    """Seconds that the connector takes for all changes; its first batch tells that it has begun."""
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": slot,
        "database.hostname": server.host, "database.port": str(server.port), "database.user": USER,
        "database.dbname": "postgres", "slot.name": slot, "publication.name": "changes",
        "publication.autocreate.mode": "disabled", "snapshot.mode": "no_data", "max.batch.size": str(_BATCH),
        "exactly.once.support": "required", "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1", "key.converter": _JSON, "value.converter": _JSON,
        "key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false",
    }  # fmt: skip
    _call(url, "PUT", f"/connectors/{slot}/config", config)
    topic = f"{slot}.public.orders"
    with tidelog.Lake(str(work / "lake"), create=False) as lake:
        first = _reached(lake, topic, 1)
        began = time.perf_counter()
        if _reached(lake, topic, rows) != rows:
            raise RuntimeError(f"{topic} has more than {rows} records")
        took = (time.perf_counter() - began) * rows / (rows - first)
    _call(url, "DELETE", f"/connectors/{slot}")
    _await(lambda: not server.run(f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{slot}' AND active"), slot)
    return took


def _reached(lake: Any, topic: str, least: int) -> int:
    """How many records the topic has, once it has `least`."""

    def count() -> int:
        return 0 if lake.peek(topic) is None else int(lake.offsets(topic)[0][1])

    _await(lambda: count() >= least, f"{least} records in {topic}")
    return count()


def _await(holds: Any, what: str) -> None:
    until = time.perf_counter() + _LIMIT_S
    while not holds():
        if time.perf_counter() > until:
            raise RuntimeError(f"not within {_LIMIT_S:g} s: {what}")
        time.sleep(0.005)


@contextmanager
def _worker(lake: Path) -> Iterator[str]:
    """A Connect worker over a new lake; its URL."""
    tidelog.Lake(str(lake)).close()
    command = [sys.executable, "-m", "tidelog", "--lake", str(lake), "--format", "json", "connect", "start"]
    with subprocess.Popen([*command, "--listener", "127.0.0.1:0"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def _call(url: str, method: str, path: str, body: object = None) -> None:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    urllib.request.urlopen(request, timeout=60).close()
