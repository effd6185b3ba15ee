"""Transactions: their log `__transaction_state`, intents, and how these are rolled forward (docs/format.md)."""
