"""What workers share: the compacted topics of configurations, offsets and statuses, in Connect's names and forms."""
