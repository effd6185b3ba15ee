"""The session, and the lake at a glance: now, and since the console started."""

from importlib.metadata import version
from typing import Any, Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.sampler import SERIES, Sampler
from tidelog.log.delta import layout
from tidelog.operations.rights import Right

# How often a page asks for what changes, in ms.
_ASK_EVERY_MS: Final = 2_000


def session(call: ConsoleCall) -> Any:
    """The user, the lake, and the token for changes."""
    console, client = call.console, call.rights.client
    folders = console.lake.storage.list_folders("")  # one call: the first look at a large lake takes its time
    return {
        "user": client.principal,
        "read_only": console.settings.read_only,
        "may": {
            "create_topics": call.offers_any(Right.CREATE_TOPIC),
            "alter_cluster": call.offers(Right.ALTER_CLUSTER),
            "describe_cluster": call.offers(Right.DESCRIBE_CLUSTER),
        },
        "csrf": console.csrf_token(client.principal),
        "lake": console.lake.uri,
        "cluster_id": console.lake.uri,
        "version": version("tidelog"),
        "since_ms": console.since_ms,
        "parts": {
            "brokers": layout.CLUSTER_TABLE in folders,
            "registry": layout.SCHEMAS_TOPIC in folders,
            "connect": any(name.startswith("connect-") for name in folders),
            "mirror": console.lake.follows() is not None,
        },
        "ask_every_ms": _ASK_EVERY_MS,
    }


def overview(call: ConsoleCall) -> Any:
    """The sums of all topics and groups that the client sees, and what is wrong with the lake."""
    sampler = call.console.part(Sampler)
    sample, rights = sampler.sample_soon(), call.rights
    topics = {name: one for name, one in sample.topics.items() if rights.sees_topic(name)}
    groups = {name: one for name, one in sample.groups.items() if rights.sees_group(name)}
    newest = sampler.newest()
    unread = sum(map(rights.sees_topic, sample.snapshot.unread))
    # What is wrong, and sums of groups, are known once all topics are.
    whole = not sample.snapshot.unread and len(topics) == len(sample.topics) and len(groups) == len(sample.groups)
    return {
        "at_ms": sample.snapshot.at_ms,
        "topics": len(topics) + unread,
        "unread": unread,
        "partitions": sum(one.partitions for one in topics.values()),
        "records": sum(one.records for one in topics.values()),
        "bytes": sum(one.bytes for one in topics.values()),
        "files": sum(one.files for one in topics.values()),
        "small_files": sum(one.small_files for one in topics.values()),
        "groups": len(groups),
        "entries": sum(one.version + 1 for one in topics.values()),
        "in_per_s": sum(sample.rates[name] or 0.0 for name in topics),
        "in_bytes_per_s": newest["bytes_in"] if whole else None,
        "out_per_s": newest["records_out"] if whole else None,
        "lag": sum(one.records for one in groups.values()),
        "alarms": sample.alarms if whole else [],
        "broken": [
            {"topic": name, "why": why} for name, why in sample.snapshot.broken.items() if rights.sees_topic(name)
        ],
    }


def requests(call: ConsoleCall) -> Any:
    """What the console asks of the store: requests a minute of late, and in all; None of a store that counts none."""
    total, per_minute = call.console.part(Sampler).requests()
    return {"requests": total, "requests_per_minute": per_minute, "looks": call.console.reader.reads}


def history(call: ConsoleCall) -> Any:
    """The lake's series since the start; nothing for a client that does not see all of the lake."""
    sampler = call.console.part(Sampler)
    sample, rights = sampler.sample_soon(), call.rights
    names = (*sample.topics, *sample.snapshot.unread)
    whole = all(map(rights.sees_topic, names)) and all(map(rights.sees_group, sample.groups))
    times, series = sampler.history() if whole else ([], {name: [] for name in SERIES})
    return {"since_ms": call.console.since_ms, "step_s": sampler.step_s, "times": times, "series": series}
