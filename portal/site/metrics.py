"""``/metrics`` for Prometheus: computed at each scrape from rows and the queue, so any web process gives the same answer."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from portal.site.selectors.operations import Operations, age_seconds, operations

_OBSERVER = "observer:"


class OperationsCollector(Collector):
    """One reading of ``operations()`` as gauges. Labels hold kinds, states and cluster names, never a tenant."""

    def __init__(self, reading: Operations) -> None:
        self._reading = reading

    def collect(self) -> Iterator[Metric]:
        yield from self._loops()
        yield from self._queue()
        yield from self._processes()
        yield from self._counts()

    def _loops(self) -> Iterator[Metric]:
        gauges = {
            "slipway_loop_lag_seconds": ("Age of the oldest due row that no worker holds.", "oldest_due_at"),
            "slipway_oldest_dirty_row_seconds": ("Age of the oldest change that was not seen true.", "oldest_dirty_at"),
            "slipway_sweep_age_seconds": ("Since the last sweep of a loop; no sample before the first.", "swept_at"),
            "slipway_dirty_rows": ("Rows whose last change was not seen true.", "dirty"),
            "slipway_due_rows": ("Rows that a loop should take now.", "due"),
            "slipway_leased_rows": ("Rows that a pass works on.", "leased"),
            "slipway_failing_rows": ("Rows whose last pass ended in an error.", "failing"),
            "slipway_set_aside_rows": ("Rows that a loop gave up on; people must look.", "set_aside"),
        }
        for name, (text, attribute) in gauges.items():
            gauge = GaugeMetricFamily(name, text, labels=["kind"])
            for loop in self._reading.loops:
                value = getattr(loop, attribute)
                if attribute == "swept_at" and value is None:
                    continue
                since = attribute.endswith("_at")
                gauge.add_metric([loop.kind], age_seconds(value, self._reading.at) if since else value)
            yield gauge

    def _queue(self) -> Iterator[Metric]:
        queue = self._reading.queue
        up = GaugeMetricFamily("slipway_queue_up", "1 when Valkey answers.", value=0 if queue is None else 1)
        yield up
        if queue is None:
            return
        messages = GaugeMetricFamily("slipway_queue_messages", "Messages that no worker has taken.", labels=["queue"])
        messages.add_metric([queue.name], queue.messages)
        yield messages
        if queue.lag_seconds is not None:
            lag = GaugeMetricFamily("slipway_queue_lag_seconds", "Age of the oldest of those messages.", labels=["queue"])
            lag.add_metric([queue.name], queue.lag_seconds)
            yield lag

    def _processes(self) -> Iterator[Metric]:
        observer = GaugeMetricFamily(
            "slipway_observer_lag_seconds", "Since the observer last heard from its cluster.", labels=["cluster"]
        )
        heartbeat = GaugeMetricFamily(
            "slipway_heartbeat_age_seconds", "Since the last sign of life of a process or loop.", labels=["name"]
        )
        for name, age in sorted(self._reading.heartbeats.items()):
            if name.startswith(_OBSERVER):
                observer.add_metric([name.removeprefix(_OBSERVER)], age)
            else:
                heartbeat.add_metric([name], age)
        yield observer
        yield heartbeat
        reachable = GaugeMetricFamily(
            "slipway_cluster_reachable", "1 reachable, 0 not; no sample until first seen.", labels=["cluster"]
        )
        for name, answer in sorted(self._reading.clusters.items()):
            if answer is not None:
                reachable.add_metric([name], 1 if answer else 0)
        yield reachable

    def _counts(self) -> Iterator[Metric]:
        for noun, states in self._reading.counts.items():
            label = "phase" if noun == "deployments" else "state"
            gauge = GaugeMetricFamily(f"slipway_{noun}", f"Number of {noun} by {label}.", labels=[label])
            for state, rows in sorted(states.items()):
                gauge.add_metric([state], rows)
            yield gauge
        yield GaugeMetricFamily(
            "slipway_open_gpu_intervals",
            "Pods that hold devices now, as the meter sees it.",
            value=self._reading.open_intervals,
        )


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The text or OpenMetrics format, as the scraper asks."""
    registry = CollectorRegistry()
    registry.register(OperationsCollector(operations()))
    encoder, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encoder(registry), content_type=content_type, headers={"Cache-Control": "no-store"})
