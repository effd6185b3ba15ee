"""tidelog.operations: what can be asked of a lake; brokers, clients, commands and pages only say it in their words."""
