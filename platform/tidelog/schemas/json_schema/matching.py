"""Pairs of alternatives: how many of one schema's have a partner of their own among the other's."""

from collections.abc import Sequence


def most_pairs(fitting: Sequence[Sequence[int]]) -> int:
    """The size of a largest matching of a bipartite graph: `fitting[i]` lists the partners that i may have.

    Augmenting paths, breadth first: O(nodes x edges), no recursion.
    """
    partner: dict[int, int] = {}  # {right: left}
    matched = 0
    for start in range(len(fitting)):
        came_from: dict[int, int] = {}  # {right: the left that reached it}
        queue = [start]
        end: int | None = None
        for left in queue:
            for right in fitting[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                if right not in partner:
                    end = right
                    break
                queue.append(partner[right])
            if end is not None:
                break
        if end is None:
            continue
        matched += 1
        previous = {left: right for right, left in partner.items()}
        step: int | None = end
        while step is not None:
            left = came_from[step]
            partner[step], step = left, previous.get(left)
    return matched
