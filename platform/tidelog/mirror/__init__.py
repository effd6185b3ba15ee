"""tidelog.mirror: lakes that follow lakes, entry by entry (docs/mirror.md)."""
