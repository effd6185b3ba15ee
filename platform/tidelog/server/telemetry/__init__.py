"""tidelog.server.telemetry: OpenTelemetry: what is traced, and how traces and metrics come to a collector."""
