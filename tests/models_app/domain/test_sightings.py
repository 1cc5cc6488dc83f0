"""What is kept of a cluster's objects fits a row, whatever their texts hold."""

from __future__ import annotations

from models_app.domain.sightings import deployment_sighting, event_sighting, pod_sighting


def test_a_null_character_in_what_a_container_or_probe_printed_is_left_out() -> None:
    waiting = {"waiting": {"reason": "CreateContainerError", "message": "exec \0 failed"}}
    pod = pod_sighting({"status": {"containerStatuses": [{"state": waiting}]}}, generation_annotation="g")
    assert pod.waiting_message == "exec  failed"
    assert event_sighting({"message": "probe said \0"}).message == "probe said "
    condition = {"type": "ReplicaFailure", "status": "True", "message": "a\0b"}
    assert deployment_sighting({"status": {"conditions": [condition]}}).failure_message == "ab"
