"""tidelog.metrics: what a lake tells Prometheus."""
