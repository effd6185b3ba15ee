"""What a consumer costs that waits for records: a member of a group with 8 partitions, all threads together."""

import time

from figures import Row
from plan import Plan

import tidelog
from tidelog.clients.consumer.consumer import Consumer

_SETTLING_S = 3.0


def run(plan: Plan) -> list[Row]:
    """The process's CPU time over its time, from when it is assigned and calm."""
    uri = str(plan.work / "idle")
    with tidelog.Lake(uri) as lake:
        lake.create_topic("t", partitions=8)
    seconds = plan.racing_s
    with Consumer({"lake": uri, "group.id": "g"}) as consumer:
        consumer.subscribe(["t"])
        # The first row of a group that a process writes has pyarrow import pandas, which takes half a second.
        while len(consumer.assignment()) < 8:
            consumer.poll(0.1)
        consumer.poll(_SETTLING_S)
        began, began_cpu = time.monotonic(), time.process_time()
        consumer.poll(seconds)
        share = (time.process_time() - began_cpu) / (time.monotonic() - began)
    return [Row("an idle consumer", "< 2 % of a core", f"{share * 100:.2f} %", share < 0.02, {"share": share})]
