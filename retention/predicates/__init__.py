"""tidelog.retention.predicates: which records a rewrite takes out of a topic, by key, header and time."""
