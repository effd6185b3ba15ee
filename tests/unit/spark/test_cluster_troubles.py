"""What a test says of a program on a cluster that failed: the reason, which its log gives long before its end."""

from support.spark_cluster import troubles

BUSY = [f"26/11/29 02:06:{second:02d} INFO TaskSetManager: Finished task {second}" for second in range(60)]
STACK = [f"\tat org.apache.spark.Deep.call(Deep.scala:{line})" for line in range(200)]


def test_the_first_troubles_are_shown_and_not_the_stacks_of_all_that_ends_with_them() -> None:
    failed = ["26/11/29 02:06:57 ERROR Query terminated", "org.apache.spark.SparkException: No worker", *STACK]
    cause = ["Caused by: java.net.SocketTimeoutException: Timed out", *STACK]
    later = ["org.apache.spark.SparkException: RpcEnv already stopped.", *STACK, "INFO Successfully stopped"]
    said = troubles("\n".join([*BUSY, *failed, *cause, *BUSY, *later]))

    for line in ("61: 26/11/29 02:06:57 ERROR", "62: org.apache", ": Caused by: java.net", "already stopped"):
        assert line in said
    assert said.index("No worker") < said.index("Timed out") < said.index("already stopped")
    assert said.endswith("INFO Successfully stopped")
    assert len(said.splitlines()) < 50


def test_a_task_that_is_lost_is_shown_with_what_its_python_raised() -> None:
    lost = ["26/11/29 02:06:57 WARN TaskSetManager: Lost task 0.0 in stage 3.0 (TID 7): PythonException: Traceback"]
    raised = [
        "Traceback (most recent call last):",
        *("  File x" for _ in range(30)),
        "tidelog.errors.StorageError: gone",
    ]
    said = troubles("\n".join([*BUSY, *lost, *raised, *STACK]))

    assert "Lost task 0.0" in said
    assert "tidelog.errors.StorageError: gone" in said


def test_a_log_without_troubles_is_shown_by_its_end_and_an_empty_one_not_at_all() -> None:
    assert troubles("\n".join(BUSY)).splitlines() == [f"{at + 1}: {BUSY[at]}" for at in range(45, 60)]
    assert troubles("") == ""
