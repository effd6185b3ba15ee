"""The rule by which a typed topic's table learns schemas that values came with.

Pure, as `tidelog.log.rules.topics`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.state.topic_state import CONFIG_PREFIX, TopicState
from tidelog.log.typed.tables import TypedTable

GROW: Final = "ADD COLUMNS"


def decide_grow(state: TopicState, topic: str, topic_id: str, schemas: Sequence[WrittenSchema]) -> Outcome[None]:
    """Let the table know schemas that values came with; nothing where it knows them, or the topic isn't typed (now).

    The entry changes the property, the table's schema and nothing else. Of two writers that see one schema at once, the
    second finds it there. Raises `SchemaError` for one that no codec takes.
    """
    metadata = require_topic(state, topic, topic_id)
    table, own = TypedTable.of(metadata), metadata.configuration
    kind, subject = (own.get(f"{CONFIG_PREFIX}{key}", "") for key in ("value.columns", "value.schema.subject"))
    wanted = [one for one in schemas if one.kind == kind and one.subject == subject]
    if table is None or not wanted:
        return Outcome((), None)
    after = table.with_schemas(wanted)
    if after == table:
        return Outcome((), None)
    changed = replace(metadata, schema=after.schema, configuration={**own, **after.properties})
    ids = ", ".join(str(one.id) for one in wanted)
    return Outcome((changed,), None, GROW, parameters={"schemas": ids})
