"""How many cells a payload's columns take: an element of a list may have a byte or two, and a cell in each column."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

# Payloads whose lists and maps take more cells than MOST_CELLS + CELLS_OF_A_BYTE * bytes have no columns.
MOST_CELLS: Final = 1_000_000
CELLS_OF_A_BYTE: Final = 8
# The fewest bytes that an element takes.
_ELEMENT_BYTES: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class ListCells:
    """A place of a type where lists grow. Of a struct, `fields`: where they do within it, by name.

    Of a list or a map, `width`: the cells of an element; `element`: where lists grow within one, if they do. `widest`:
    the cells of the widest element anywhere.
    """

    fields: "Mapping[str, ListCells]" = field(default_factory=dict)
    width: int = 0
    element: "ListCells | None" = None
    is_map: bool = False

    widest: int = field(init=False)

    def __post_init__(self) -> None:
        inner = [*self.fields.values(), *([] if self.element is None else [self.element])]
        object.__setattr__(self, "widest", max([self.width, *(one.widest for one in inner)]))

    def may_be_too_much(self, size: int) -> bool:
        """Whether a payload of `size` bytes may take more cells than it may, so that they must be counted."""
        return size // _ELEMENT_BYTES * self.widest > MOST_CELLS + size * CELLS_OF_A_BYTE

    def is_too_much(self, size: int, value: Any, get: Callable[[Any, str], Any]) -> bool:
        """Whether a payload of `size` bytes takes more. `get`: a struct's field by name, None where it is absent."""
        return self._cells(value, get) > MOST_CELLS + size * CELLS_OF_A_BYTE

    def _cells(self, value: Any, get: Callable[[Any, str], Any]) -> int:
        if value is None:
            return 0
        if self.fields:
            return sum(one._cells(get(value, name), get) for name, one in self.fields.items())
        inner = self.element
        if inner is None:
            return len(value) * self.width
        held = value.values() if self.is_map else value
        return len(value) * self.width + sum(inner._cells(one, get) for one in held)


def list_cells_of(kind: pa.DataType) -> ListCells | None:
    """Where lists and maps grow within a type; None where they don't."""
    if pa.types.is_struct(kind):
        found = {one.name: list_cells_of(one.type) for one in kind}
        fields = {name: one for name, one in found.items() if one is not None}
        return ListCells(fields) if fields else None
    if pa.types.is_map(kind):
        return ListCells({}, cells_of(kind.item_type), list_cells_of(kind.item_type), is_map=True)
    return ListCells({}, cells_of(kind.value_type), list_cells_of(kind.value_type)) if pa.types.is_list(kind) else None


def cells_of(kind: pa.DataType) -> int:
    """The cells of one value of a type, without what its lists hold."""
    return sum(cells_of(one.type) for one in kind) if pa.types.is_struct(kind) else 1
