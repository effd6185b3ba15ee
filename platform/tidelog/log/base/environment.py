"""Environment variables that every entrance of tidelog reads."""

from typing import Final

# The address of the lake of a program that names none.
LAKE_VARIABLE: Final = "TIDELOG_LAKE"
