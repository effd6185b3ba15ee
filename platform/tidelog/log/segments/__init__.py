"""tidelog.log.segments: segments are written, staged and read."""
