"""Running connectors: their tasks' loops, what becomes of errors, and how records reach topics."""
