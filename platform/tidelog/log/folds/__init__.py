"""States that the records of compacted topics add up to."""
