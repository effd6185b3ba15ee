"""Retention: which records a topic's configuration lets go, as plans over what its log says, and the work."""

from tidelog.retention.expiry import Expiry, decide_expiry, plan_expiry

__all__ = ["Expiry", "decide_expiry", "plan_expiry"]
