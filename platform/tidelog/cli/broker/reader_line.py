"""What `tidelog --version` says of brokers, as their log does."""

from typing import Final

from tidelog.broker.records.reader import READER

READER_LINE: Final = f"Record batches are read in {READER}"
