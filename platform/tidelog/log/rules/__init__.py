"""tidelog.log.rules: pure decisions, (state, request) -> actions."""
