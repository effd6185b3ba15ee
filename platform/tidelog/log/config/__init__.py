"""tidelog.log.config: configuration of topics and lakes."""
