"""Workers, which share connectors and tasks by a group over the lake."""
