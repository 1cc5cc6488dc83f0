"""Messages of a cluster's watchers -> rows, in batches. A failed batch is simply repeated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from fleet.domain.nodes import NodeFacts
from fleet.domain.objects import ObjectFacts
from fleet.domain.pods import PodFacts
from fleet.models import Cluster
from fleet.observer.kinds import NODES, PODS, WatchedKind
from fleet.observer.messages import Answered, Current, Listed, Lost, Message, Seen
from fleet.selectors.coverage import covered_until
from fleet.services.coverage import cluster_covered, cluster_described, cluster_lost
from fleet.services.observations import (
    PodSight,
    nodes_listed,
    nodes_seen,
    objects_listed,
    objects_seen,
    pods_listed,
    pods_seen,
)


class ClusterWriter:
    """Remembers what the messages say of the cluster itself: when it answered, and until when its pods are known."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.covered_at: datetime | None = None
        self.answered_at: datetime | None = None
        self.lost: dict[WatchedKind | None, Lost] = {}
        self.events = 0

    def write(self, messages: Sequence[Message]) -> None:
        """Store the messages in their order; repeating the call with the same ones changes nothing (K8)."""
        for (_, form), group in groupby(messages, key=lambda message: (message_kind(message), type(message))):
            batch = list(group)
            if form is Seen:
                self._write_seen([message for message in batch if isinstance(message, Seen)])
                self.events += len(batch)
            for message in batch:
                if isinstance(message, Listed):
                    self._write_listed(message)
                self._note(message)

    def _note(self, message: Message) -> None:
        if isinstance(message, Lost):
            self.lost[message.kind] = message
            return
        self.answered_at = max(self.answered_at or message.at, message.at)
        if isinstance(message, Answered):
            if message.version:
                cluster_described(cluster=self.cluster, kubernetes_version=message.version, installed_kinds=message.kinds)
            self.lost.pop(None, None)
            return
        self.lost.pop(message.kind, None)
        if message.kind == PODS:
            proven = message.asked_at if isinstance(message, Listed) else message.at
            self.covered_at = max(self.covered_at or proven, proven)

    def _write_listed(self, message: Listed) -> None:
        cluster, version, at = self.cluster, message.version, message.at
        if message.kind == PODS:
            pods_listed(
                cluster=cluster,
                pods=[facts for facts in message.facts if isinstance(facts, PodFacts)],
                version=version,
                asked_at=message.asked_at,
                at=at,
                covered_at=self.covered_at or covered_until(cluster),
            )
        elif message.kind == NODES:
            nodes = [facts for facts in message.facts if isinstance(facts, NodeFacts)]
            nodes_listed(cluster=cluster, nodes=nodes, version=version, at=at)
        else:
            objects_listed(
                cluster=cluster,
                api_version=message.kind.api_version,
                kind=message.kind.kind,
                objects=[facts for facts in message.facts if isinstance(facts, ObjectFacts)],
                version=version,
                at=at,
            )

    def _write_seen(self, batch: Sequence[Seen]) -> None:
        cluster, kind, at = self.cluster, batch[0].kind, batch[-1].at
        if kind == PODS:
            pods_seen(
                cluster=cluster,
                sights=[
                    PodSight(message.facts, message.at, message.deleted)
                    for message in batch
                    if isinstance(message.facts, PodFacts)
                ],
            )
        elif kind == NODES:
            nodes = [(message.facts, message.deleted) for message in batch if isinstance(message.facts, NodeFacts)]
            nodes_seen(
                cluster=cluster,
                nodes=[facts for facts, deleted in nodes if not deleted],
                at=at,
                gone=[facts for facts, deleted in nodes if deleted],
            )
        else:
            objects = [(message.facts, message.deleted) for message in batch if isinstance(message.facts, ObjectFacts)]
            objects_seen(
                cluster=cluster,
                objects=[facts for facts, deleted in objects if not deleted],
                at=at,
                gone=[facts for facts, deleted in objects if deleted],
            )

    def report(self, at: datetime, *, backlog: int) -> None:
        """The heartbeat: the cluster answers and its pods are known until then, or it does not and why.

        Call it every few seconds. One kind that cannot be watched is a warning; only the plain question says "no answer".
        """
        silent = self.lost.get(None)
        if silent is not None and (self.answered_at is None or silent.at >= self.answered_at):
            cluster_lost(cluster=self.cluster, source="observer", at=at, error=silent.error)
        elif self.answered_at is not None:
            warnings = [f"{lost.kind}: {lost.error}" for lost in self.lost.values() if lost.kind is not None]
            detail = {"backlog": backlog, "events": self.events, "warning": "; ".join(warnings)[:1000]}
            cluster_covered(
                cluster=self.cluster, source="observer", at=self.answered_at, covered_at=self.covered_at, detail=detail
            )


def message_kind(message: Message) -> object:
    """What the message is about; None for the cluster as a whole."""
    return message.kind if isinstance(message, Listed | Seen | Current) else None
