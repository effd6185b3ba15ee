"""Keys of the lake in a broker's file: the lake takes those that it does not set itself."""

import logging
from collections.abc import Mapping

from tidelog.cli.serving.kafka_file import TakenFile
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.lake import Lake

logger = logging.getLogger(__name__)


def tell_of_file(taken: TakenFile, path: str) -> None:
    """Write into the log which keys of a file were passed over, and why."""
    if said := taken.passed_over():
        count = sum(1 for row in taken.rows if row.fate == "passed over")
        logger.warning("Passed over: %d of the %d keys of %s. %s", count, len(taken.rows), path, said)


def take_lake_keys(lake: Lake, given: Mapping[str, str]) -> None:
    """Have the lake take what a broker's file says of its keys.

    As in Kafka, what was set for all brokers comes before what is in a broker's file: a key that the lake sets keeps
    its value, and the log names those that differ. What is a key's default is not set.
    """
    if not given:
        return
    asked = LakeConfig.parse(given)
    lake.ensure_lake()
    own = lake.reload_config().overrides
    wanted = {key: text for key, text in asked.overrides.items() if own.get(key, text) != text or key not in own}
    kept = {key: text for key, text in wanted.items() if key in own}
    new = {k: text for k, text in wanted.items() if k not in own and asked.own[k] != LakeConfig.KEYS[k].default}
    if new and lake.follows() is None:
        lake.alter_config(new)
        logger.info("The lake takes from the broker's file: %s", _listed(new))
    elif new:
        logger.warning("The lake follows another one, whose configuration counts, and not: %s", _listed(new))
    if kept:
        logger.warning(
            "The lake's own values count, not the file's: %s. 'tidelog lake alter' changes them.",
            ", ".join(f"{key}={own[key]} (the file has {text})" for key, text in kept.items()),
        )


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={text}" for key, text in values.items())
