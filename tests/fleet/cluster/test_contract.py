"""The port's contract, run unchanged on the fake and on the real API server (design §7)."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from fleet.cluster import (
    Absent,
    BadLine,
    ClusterPort,
    Conflict,
    NotInstalled,
    ObjectRef,
    StaleObject,
)
from tests.fleet.cluster.fake import FakeCluster

Json = dict[str, Any]


class World(Protocol):
    """One cluster with a namespace of the test's own, and what another manager does to it."""

    port: ClusterPort
    namespace: str

    def edit(self, ref: ObjectRef, path: str, value: Any) -> None: ...


class _Fake:
    def __init__(self) -> None:
        self.fake = FakeCluster()
        self.port: ClusterPort = self.fake
        self.namespace = "contract"
        self.fake.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})

    def edit(self, ref: ObjectRef, path: str, value: Any) -> None:
        self.fake.edit(ref, path, value, manager="kubectl")


class _Real:
    def __init__(self, port: ClusterPort, api: Any, namespace: str) -> None:
        self.port, self._api, self.namespace = port, api, namespace

    def edit(self, ref: ObjectRef, path: str, value: Any) -> None:
        """Server-side apply by another manager, with force."""
        body: Json = {
            "apiVersion": ref.api_version,
            "kind": ref.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace},
        }
        *above, last = path.removeprefix(".").split(".")
        place = body
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value
        self._api.apply(body, manager="kubectl")


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.cluster)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "fake":
        yield _Fake()
        return
    from fleet.cluster.kube import KubeCluster  # noqa: PLC0415 - the fake's half runs without the client

    api = request.getfixturevalue("admin")
    plane = request.getfixturevalue("control_plane")
    yield _Real(KubeCluster(plane.admin_kubeconfig), api, request.getfixturevalue("namespace"))


def settings_map(world: World, name: str = "settings", **data: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": world.namespace, "labels": {"app": "contract"}},
        "data": data or {"color": "red"},
    }


def again(world: World, manifest: Json, live: Json) -> Json:
    meta = live["metadata"]
    return world.port.apply(manifest, uid=meta["uid"], resource_version=meta["resourceVersion"])


def test_absent_object_is_none(world: World) -> None:
    assert world.port.get(ObjectRef("v1", "ConfigMap", world.namespace, "nothing")) is None


def test_object_in_an_absent_namespace_is_none(world: World) -> None:
    assert world.port.get(ObjectRef("v1", "ConfigMap", "no-such-namespace", "nothing")) is None


def test_apply_creates_and_get_reads_it(world: World) -> None:
    made = world.port.apply(settings_map(world))
    found = world.port.get(ObjectRef.of(made))
    assert found is not None
    assert found["data"] == {"color": "red"}
    assert found["metadata"]["uid"] == made["metadata"]["uid"]


def test_apply_without_a_fence_only_creates(world: World) -> None:
    made = world.port.apply(settings_map(world))
    with pytest.raises(StaleObject):
        world.port.apply(settings_map(world, color="blue"))
    assert world.port.get(ObjectRef.of(made)) == made


def test_apply_changes_the_version_that_was_read(world: World) -> None:
    made = world.port.apply(settings_map(world))
    changed = again(world, settings_map(world, color="blue"), made)
    assert changed["data"] == {"color": "blue"}
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


def test_apply_refuses_a_stale_version_and_writes_nothing(world: World) -> None:
    made = world.port.apply(settings_map(world))
    newer = again(world, settings_map(world, color="green"), made)
    with pytest.raises(StaleObject):
        again(world, settings_map(world, color="blue"), made)
    assert world.port.get(ObjectRef.of(made)) == newer


def test_apply_refuses_another_uid(world: World) -> None:
    made = world.port.apply(settings_map(world))
    other = copy.deepcopy(made)
    other["metadata"]["uid"] = "4e2b6f57-2f0f-4f4e-9d3a-6d8a1a6a0000"
    with pytest.raises(StaleObject):
        again(world, settings_map(world, color="blue"), other)


def test_apply_with_a_fence_never_recreates(world: World) -> None:
    made = world.port.apply(settings_map(world))
    world.port.delete(ObjectRef.of(made), uid=made["metadata"]["uid"])
    with pytest.raises(StaleObject):
        again(world, settings_map(world, color="blue"), made)
    assert world.port.get(ObjectRef.of(made)) is None


def test_apply_needs_both_halves_of_the_fence(world: World) -> None:
    with pytest.raises(ValueError, match="both"):
        world.port.apply(settings_map(world), uid="x")


def test_applying_the_same_again_changes_nothing(world: World) -> None:
    made = world.port.apply(settings_map(world))
    assert again(world, settings_map(world), made)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_field_no_longer_in_the_manifest_is_removed(world: World) -> None:
    made = world.port.apply(settings_map(world, color="red", size="big"))
    assert again(world, settings_map(world, color="red"), made)["data"] == {"color": "red"}


def test_fields_of_others_stay(world: World) -> None:
    made = world.port.apply(settings_map(world))
    ref = ObjectRef.of(made)
    world.edit(ref, ".data.shape", "round")
    live = world.port.get(ref)
    assert live is not None
    assert again(world, settings_map(world, color="blue"), live)["data"] == {"color": "blue", "shape": "round"}


def test_a_conflict_names_field_and_owner(world: World) -> None:
    made = world.port.apply(settings_map(world))
    ref = ObjectRef.of(made)
    world.edit(ref, ".data.color", "pink")
    live = world.port.get(ref)
    assert live is not None
    with pytest.raises(Conflict) as caught:
        again(world, settings_map(world, color="blue"), live)
    assert caught.value.fields == ((".data.color", "kubectl"),)
    assert world.port.get(ref) == live


def test_takeover_takes_listed_fields_only(world: World) -> None:
    made = world.port.apply(settings_map(world, color="red", size="big"))
    ref = ObjectRef.of(made)
    world.edit(ref, ".data.color", "pink")
    live = world.port.get(ref)
    assert live is not None
    fence = {"uid": live["metadata"]["uid"], "resource_version": live["metadata"]["resourceVersion"]}
    wanted = settings_map(world, color="blue", size="big")
    with pytest.raises(Conflict):
        world.port.takeover(wanted, fields={".data.size"}, **fence)
    assert world.port.takeover(wanted, fields={".data.color"}, **fence)["data"] == {"color": "blue", "size": "big"}


def test_takeover_is_fenced_too(world: World) -> None:
    made = world.port.apply(settings_map(world))
    ref = ObjectRef.of(made)
    world.edit(ref, ".data.color", "pink")
    meta = made["metadata"]
    with pytest.raises(StaleObject):
        world.port.takeover(
            settings_map(world, color="blue"),
            fields={".data.color"},
            uid=meta["uid"],
            resource_version=meta["resourceVersion"],
        )


def test_dry_run_writes_nothing(world: World) -> None:
    dry = world.port.apply(settings_map(world), dry_run=True)
    assert dry["data"] == {"color": "red"}
    assert world.port.get(ObjectRef.of(dry)) is None


def test_apply_into_an_absent_namespace(world: World) -> None:
    manifest = settings_map(world)
    manifest["metadata"]["namespace"] = f"none-{secrets.token_hex(3)}"
    with pytest.raises(Absent):
        world.port.apply(manifest)


def test_a_kind_that_is_not_installed(world: World) -> None:
    model = {
        "apiVersion": "not.installed/v1",
        "kind": "Model",
        "metadata": {"name": "m", "namespace": world.namespace},
    }
    with pytest.raises(NotInstalled):
        world.port.apply(model)
    with pytest.raises(NotInstalled):
        world.port.get(ObjectRef.of(model))
    with pytest.raises(NotInstalled):
        world.port.list_all("v1", "NoSuchKind")


def test_delete_of_exactly_that_object(world: World) -> None:
    made = world.port.apply(settings_map(world))
    ref = ObjectRef.of(made)
    with pytest.raises(StaleObject):
        world.port.delete(ref, uid="4e2b6f57-2f0f-4f4e-9d3a-6d8a1a6a0000")
    with pytest.raises(StaleObject):
        world.port.delete(ref, uid=made["metadata"]["uid"], resource_version="2")
    assert world.port.get(ref) is not None
    world.port.delete(ref, uid=made["metadata"]["uid"], resource_version=made["metadata"]["resourceVersion"])
    assert world.port.get(ref) is None
    assert world.port.delete(ref, uid=made["metadata"]["uid"]) is None


def test_c21_delete_held_by_a_finalizer_is_harmless_to_repeat(world: World) -> None:
    manifest = settings_map(world)
    manifest["metadata"]["finalizers"] = ["example.org/held"]
    made = world.port.apply(manifest)
    ref = ObjectRef.of(made)
    for _ in range(3):
        world.port.delete(ref, uid=made["metadata"]["uid"])
    live = world.port.get(ref)
    assert live is not None
    assert live["metadata"]["deletionTimestamp"]
    assert live["metadata"]["finalizers"] == ["example.org/held"]
    meta, manifest["metadata"]["finalizers"] = live["metadata"], []
    world.port.apply(manifest, uid=meta["uid"], resource_version=meta["resourceVersion"])


def test_c18_a_list_is_whole_whatever_the_page(world: World) -> None:
    for number in range(7):
        world.port.apply(settings_map(world, f"item-{number}"))
    for limit in (1, 2, 3, 500):
        listing = world.port.list_all(
            "v1", "ConfigMap", namespace=world.namespace, label_selector="app=contract", limit=limit
        )
        assert [item["metadata"]["name"] for item in listing.items] == [f"item-{number}" for number in range(7)]
        assert int(listing.resource_version) > 0


def test_a_label_selector_selects(world: World) -> None:
    world.port.apply(settings_map(world))
    found = world.port.list_all("v1", "ConfigMap", namespace=world.namespace, label_selector="app=other")
    assert found.items == []


def test_c16_a_watch_from_the_lists_version_misses_nothing(world: World) -> None:
    listing = world.port.list_all("v1", "ConfigMap", namespace=world.namespace)
    made = world.port.apply(settings_map(world))
    again(world, settings_map(world, color="blue"), made)
    world.port.delete(ObjectRef.of(made), uid=made["metadata"]["uid"])
    lines = world.port.watch(
        "v1", "ConfigMap", resource_version=listing.resource_version, timeout_s=2, namespace=world.namespace
    )
    seen = []
    for line in lines:
        assert not isinstance(line, BadLine)
        if line.type != "BOOKMARK" and line.object["metadata"]["name"] == "settings":
            seen.append((line.type, line.object["data"]["color"], line.resource_version))
            if line.type == "DELETED":
                break
    assert [(kind, color) for kind, color, _ in seen] == [("ADDED", "red"), ("MODIFIED", "blue"), ("DELETED", "blue")]
    versions = [int(version) for _, _, version in seen]
    assert versions == sorted(set(versions))
    assert versions[0] > int(listing.resource_version)


def test_what_is_served(world: World) -> None:
    found = {(item.api_version, item.kind): item for item in world.port.api_resources()}
    deployment = found["apps/v1", "Deployment"]
    assert (deployment.name, deployment.namespaced) == ("deployments", True)
    assert {"list", "watch"} <= set(deployment.verbs)
    assert not found["v1", "Namespace"].namespaced


def test_version(world: World) -> None:
    assert world.port.version().git_version.startswith("v1.")
