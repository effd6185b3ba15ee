"""tidelog.broker.telemetry: what clients measure of themselves, and push to brokers (KIP-714)."""
