"""tidelog.mirror.branch: lakes that share what another one held, and go their own way from there (docs/time.md)."""
