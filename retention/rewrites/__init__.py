"""tidelog.retention.rewrites: segments are written again."""
