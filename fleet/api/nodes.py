"""Nodes and devices as last observed. Names of tenants' pods follow the right to read their project."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.domain.health import HealthLevel
from fleet.selectors.capacity import profile_capacity
from fleet.selectors.nodes import NodeView, fleet_nodes
from fleet.selectors.profiles import profile_list
from portal.tenancy.api.endpoint import Endpoint
from portal.tenancy.api.fields import NamedSerializer
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.permissions import actor_may
from portal.tenancy.selectors.projects import project_list


class HealthSerializer(serializers.Serializer[Any]):
    level = serializers.ChoiceField(choices=[level.value for level in HealthLevel])
    text = serializers.CharField()


class DeviceSerializer(serializers.Serializer[Any]):
    resource_name = serializers.CharField()
    capacity = serializers.IntegerField()
    allocatable = serializers.IntegerField()
    used = serializers.IntegerField(help_text="May exceed allocatable after a card is withdrawn.")
    free = serializers.IntegerField()
    withdrawn = serializers.IntegerField()


class NodePodSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    project = serializers.CharField(source="project_id")
    kind = serializers.CharField(source="owner_kind")
    id = serializers.CharField(source="owner_id")
    devices = serializers.DictField(child=serializers.IntegerField())
    terminating = serializers.BooleanField()


class NodeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    cluster = serializers.CharField()
    cluster_reachable = serializers.BooleanField(allow_null=True)
    profile = serializers.CharField(source="profile_name", help_text='"" when no GPU profile covers it.')
    ready = serializers.BooleanField(allow_null=True)
    unschedulable = serializers.BooleanField()
    health = HealthSerializer()
    devices = DeviceSerializer(many=True)
    pods = NodePodSerializer(many=True, help_text="Those that hold devices and that you may see.")
    hidden_pods = serializers.IntegerField(help_text="Those of projects that you may not read.")
    labels = serializers.DictField(child=serializers.CharField(), help_text="Empty without the right to read the fleet.")
    heartbeat_at = serializers.DateTimeField(allow_null=True)
    observed_at = serializers.DateTimeField()


class NodesSerializer(serializers.Serializer[Any]):
    results = NodeSerializer(many=True)


class CapacitySerializer(serializers.Serializer[Any]):
    profile = NamedSerializer()
    total = serializers.IntegerField()
    allocatable = serializers.IntegerField()
    used = serializers.IntegerField()
    free = serializers.IntegerField()
    nodes = serializers.IntegerField()
    largest_node = serializers.IntegerField(help_text="Most devices that one node has.")


class CapacitiesSerializer(serializers.Serializer[Any]):
    results = CapacitySerializer(many=True)


class NodesView(Endpoint):
    @extend_schema(responses=NodesSerializer)
    def get(self, request: Request) -> Response:
        """Every node, its devices, and who holds them."""
        everything = actor_may(actor=self.actor, permission=Permission.FLEET_READ)
        readable = {project.public_id for project in project_list(actor=self.actor)}
        shown = [_shown(node, readable, everything) for node in fleet_nodes()]
        return Response(NodesSerializer({"results": shown}).data)


class CapacityView(Endpoint):
    @extend_schema(responses=CapacitiesSerializer)
    def get(self, request: Request) -> Response:
        """Devices of each profile over the whole fleet: there, taken, free."""
        profiles = list(profile_list(enabled_only=True))
        found = profile_capacity(profile_ids=[profile.pk for profile in profiles])
        names = ("total", "allocatable", "used", "free", "nodes", "largest_node")
        shown = [{"profile": profile, **{name: getattr(found[profile.pk], name) for name in names}} for profile in profiles]
        return Response(CapacitiesSerializer({"results": shown}).data)


def _shown(node: NodeView, readable: set[str], everything: bool) -> dict[str, Any]:
    pods = [pod for pod in node.pods if pod.project_id in readable or (everything and not pod.project_id)]
    return {
        "name": node.name,
        "cluster": node.cluster,
        "cluster_reachable": node.cluster_reachable,
        "profile_name": node.profile_name,
        "ready": node.ready,
        "unschedulable": node.unschedulable,
        "health": node.health,
        "devices": node.devices,
        "pods": pods,
        "hidden_pods": len(node.pods) - len(pods),
        "labels": node.labels if everything else {},
        "heartbeat_at": node.heartbeat_at,
        "observed_at": node.observed_at,
    }
