"""What servers of Kafka's protocol and of HTTP have in common: listeners, TLS, log-ins that failed, threads."""
