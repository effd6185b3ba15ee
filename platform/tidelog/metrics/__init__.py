"""tidelog.metrics: what a lake and its processes tell Prometheus."""
