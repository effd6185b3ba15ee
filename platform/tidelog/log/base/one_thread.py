"""The environment in which libraries begin no thread when they are imported, for processes that fork others."""

from collections.abc import Mapping
from typing import Final

# A fork has the thread alone that forked, and keeps the locks that others hold.
ONE_THREAD: Final[Mapping[str, str]] = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "_RJEM_MALLOC_CONF": "background_thread:false",
}
