"""tidelog.server: what the servers of HTTP share: connections with bounds, log-ins, TLS, paths."""
