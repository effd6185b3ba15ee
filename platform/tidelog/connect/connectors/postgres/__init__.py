"""A source over PostgreSQL's log: rows and their changes as Debezium's records, each once."""
