"""Rules of the product as a whole: modules that are too small to be one, and class names that mean two things."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tidy_imports import modules_of
from tidy_source import Source

SMALL_MODULE_LINES = 60

# Modules below 60 lines that only one module of their own folder imports, and why each is one all the same.
SMALL_MODULES: Mapping[str, str] = {
    "groups/member/leader.py": "what a classic group's leader does, apart from what any member does",
    "platform/tidelog/console/cuts.py": "a page's answers, as the other modules there",
    "groups/rules/streams/reconciliation.py": "one step of a member, apart from what a heartbeat says",
    "platform/tidelog/broker/groups/finding.py": "an API about the cluster, beside those about groups",
    "platform/tidelog/broker/produce/entry_spans.py": "what traces say of an entry, apart from how it is made",
    "platform/tidelog/broker/transactions/end_spans.py": "what traces say of a transaction, apart from how it ends",
    "platform/tidelog/cli/console.py": "a command, as the other modules there",
    "platform/tidelog/cli/registry.py": "a command, as the other modules there",
    "platform/tidelog/log/read_on.py": "a rule about time, which topics and tests of what lasts go by",
    "platform/tidelog/console/guard.py": "which requests may come from a page, apart from routing",
    "platform/tidelog/log/config/refused.py": "a table of keys and reasons, as kafka_brokers beside it",
    "platform/tidelog/console/sql/confinement.py": "what a process gives up for good, apart from queries",
    "platform/tidelog/spark/streams/regrouping.py": "one kind of state, beside those of aggregations and of joins",
}
# Class names that several modules define at their top, and why.
REPEATED_CLASSES: Mapping[str, str] = {
    "AclOperation": "confluent-kafka's enumeration, and the protocol's codes",
    "Lake": "what users open, and the lake of the log below it",
    "Metadata": "confluent-kafka's class, and a Delta table's action",
    "RuleSet": "confluent-kafka's class, and what a registry's log holds",
    "Schema": "confluent-kafka's class, and what a registry's log holds",
    "ScramMechanism": "confluent-kafka's enumeration, and SASL's names",
    "TopicDescription": "confluent-kafka's class of the admin client, and the lake's own",
    "TopicPartition": "confluent-kafka's class, and the source's tuple",
}


def small_modules(sources: Iterable[Source]) -> list[str]:
    """Paths of modules below 60 lines of which one module, of the same folder, is the only importer.

    Such a module is a part of its importer, unless it holds an idea of its own: then a reason says which.
    """
    by_module = {source.module: source for source in sources}
    importers: dict[str, set[str]] = defaultdict(set)
    for importer in by_module.values():
        if importer.is_package:  # what a package's `__init__.py` re-exports is public, and has a name of its own
            continue
        for module in modules_of(importer, by_module):
            importers[module] |= {importer.module} - {module}
    return sorted(
        source.path
        for module, source in by_module.items()
        if len(source.text.splitlines()) < SMALL_MODULE_LINES and not source.is_package
        if {by_module[name].folder for name in importers[module]} == {source.folder}
        if len(importers[module]) == 1
    )


def repeated_classes(sources: Iterable[Source]) -> dict[str, list[str]]:
    """Names of top-level classes that several modules define, each with the modules' paths."""
    places: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(source.path)
    return {name: sorted(paths) for name, paths in sorted(places.items()) if len(paths) > 1}
