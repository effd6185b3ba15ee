"""What a process has that stays up: lines of its log, metrics and health, a start and an end."""
