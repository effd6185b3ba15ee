"""tidelog.console.sql: SQL over topics, in a process that can reach nothing else."""
