"""As whom a consumer reads: what a producer's transaction commits its offsets with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """A member of a group's generation; generation -1 and member "" for a consumer that is in none."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
