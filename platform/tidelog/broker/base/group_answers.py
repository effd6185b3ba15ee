"""Answers about groups that both the guard and the handlers give."""

from typing import Any


def no_consumer_group(group_id: str, code: int, message: str) -> dict[str, Any]:
    """What ConsumerGroupDescribe says of a group that is not described."""
    return _no_group(group_id, code, message) | {"assignor_name": ""}


def no_streams_group(group_id: str, code: int, message: str) -> dict[str, Any]:
    """What StreamsGroupDescribe says of a group that is not described."""
    return _no_group(group_id, code, message) | {"topology": None}


def _no_group(group_id: str, code: int, message: str) -> dict[str, Any]:
    return {
        "error_code": code,
        "error_message": message,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "members": [],
    }


def no_streams_heartbeat(code: int, message: str) -> dict[str, Any]:
    """What StreamsGroupHeartbeat says to a member that is refused."""
    return {
        "error_code": code,
        "error_message": message,
        "member_id": "",
        "member_epoch": 0,
        "heartbeat_interval": 0,
        "acceptable_recovery_lag": 0,
        "task_offset_interval": 0,
        "status": [],
        "active_tasks": None,
        "standby_tasks": None,
        "warmup_tasks": None,
        "endpoint_information_epoch": 0,
        "partitions_by_user_endpoint": None,
    }


def no_heartbeat(code: int, message: str) -> dict[str, Any]:
    """What ConsumerGroupHeartbeat says to a member that is refused: id and epoch are those of other answers only."""
    return {"error_code": code, "error_message": message, "member_id": None, "member_epoch": 0, "assignment": None}
