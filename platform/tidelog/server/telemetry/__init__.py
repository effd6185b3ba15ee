"""tidelog.server.telemetry: which requests OpenTelemetry traces, and the way of traces and metrics to a collector."""
