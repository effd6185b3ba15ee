"""Connectors' tasks without a worker: contexts that record what a task asks, and stores of offsets."""

import json


def _key(partition):
    return json.dumps(partition, sort_keys=True)


class StoredOffsets:
    """Source offsets that were committed; `keep` commits those of records, as a worker does with them."""

    def __init__(self):
        self._stored = {}

    def offset(self, partition):
        return self._stored.get(_key(partition))

    def offsets(self, partitions):
        return [self.offset(one) for one in partitions]

    def keep(self, records):
        for record in records:
            self._stored[_key(record.source_partition)] = dict(record.source_offset)


class SourceContext:
    """A source task's context whose waits end at once; `waits` has their seconds."""

    def __init__(self, stored=None, configs=None, worker=None):
        self.offset_storage_reader = stored or StoredOffsets()
        self.worker_properties = worker or {}
        self.configs = configs or {}
        self.waits = []

    def wait(self, seconds):
        self.waits.append(seconds)
        return False


class SinkContext:
    """A sink task's context that records seeks, refused records and waits."""

    def __init__(self, configs=None, tolerant=True):
        self.configs = configs or {}
        self.assignment = set()
        self.seeks, self.refused, self.waits = {}, [], []
        self._tolerant = tolerant

    @property
    def errant_record_reporter(self):
        return self

    def report(self, record, error):
        if not self._tolerant:
            raise error
        self.refused.append((record, error))

    def seek(self, partition, offset):
        self.seeks[partition] = offset

    def retry_after(self, seconds):
        self.waits.append(seconds)

    def pause(self, *partitions):
        pass

    def resume(self, *partitions):
        pass

    def request_commit(self):
        pass

    def wait(self, seconds):
        self.waits.append(seconds)
        return False


class ApplicationContext:
    """What a task that is a program of its own gets. `worker`: the worker's properties."""

    def __init__(self, worker=None, lake=None):
        self.worker_properties, self.lake, self.group_id = worker or {}, lake, "connect-c"


def started_source(connector_class, config, stored=None, max_tasks=1, number=0):
    """(task, context) of one of a connector's tasks."""
    connector = connector_class()
    connector.start(config, None)
    configs = connector.task_configs(max_tasks)
    connector.stop()
    task, context = connector_class.task_class(), SourceContext(stored, configs[number])
    task.start(configs[number], context)
    return task, context


def polled(task, stored=None, polls=20):
    """All records of a task until two polls in a row give none; their offsets are kept where there is a store."""
    found, empty = [], 0
    for _ in range(polls):
        records = task.poll()
        if stored is not None:
            stored.keep(records)
        found += records
        empty = 0 if records else empty + 1
        if empty == 2:
            break
    return found


def started_sink(connector_class, config, partitions=(), tolerant=True, **task_arguments):
    """(task, context) of a sink's first task, with partitions."""
    connector = connector_class()
    connector.start(config, None)
    task_config = connector.task_configs(1)[0]
    connector.stop()
    task, context = connector_class.task_class(**task_arguments), SinkContext(task_config, tolerant)
    task.start(task_config, context)
    task.open(partitions)
    return task, context
