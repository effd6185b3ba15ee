"""Environment variables: what every entrance of tidelog reads, and what processes that fork others set."""

from collections.abc import Mapping
from typing import Final

# The address of the lake of a program that names none.
LAKE_VARIABLE: Final = "TIDELOG_LAKE"
# With these, libraries begin no thread when they are imported, for processes that fork others: a fork has the thread
# alone that forked, and keeps the locks that others hold.
ONE_THREAD: Final[Mapping[str, str]] = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "_RJEM_MALLOC_CONF": "background_thread:false",
}
