"""Which tables of a lake a mirror ships, and in which order of one round."""

import re
from enum import IntEnum

from tidelog.log.delta import layout
from tidelog.log.rules import names


class Rank(IntEnum):
    """The order in which a round ships tables; their heads are read the other way round.

    What a table's entries rest on is in the tables of lower ranks: a record's bytes name a schema, a committed offset
    names records, a committed transaction names records and offsets, a cut names versions of all the others.
    """

    SCHEMAS = 0
    TOPICS = 1
    ACCESS = 2
    GROUPS = 3
    TRANSACTIONS = 4
    CUTS = 5


def rank(name: str, wanted: re.Pattern[str] | None = None) -> Rank | None:
    """A table's rank; None for what is not shipped. `wanted`: topics are shipped whose whole name it matches.

    `__cluster` stays: it says which brokers serve this lake, at addresses of this lake's machines.

    >>> [rank(name, re.compile("orders|pay.*")) for name in ("orders", "others", "_schemas", "__cluster")]
    [<Rank.TOPICS: 1>, None, <Rank.SCHEMAS: 0>, None]
    """
    if name == layout.CUTS_TABLE:
        return Rank.CUTS
    if name == layout.TRANSACTIONS_TABLE:
        return Rank.TRANSACTIONS
    if name == layout.OFFSETS_TABLE or name.startswith(f"{layout.OFFSETS_TABLE}-"):
        return Rank.GROUPS
    if name == layout.ACCESS_TABLE:
        return Rank.ACCESS
    if name == layout.SCHEMAS_TOPIC:
        return Rank.SCHEMAS
    if not names.may_be_topic(name) or not (wanted is None or names.is_internal(name) or wanted.fullmatch(name)):
        return None
    return Rank.TOPICS
