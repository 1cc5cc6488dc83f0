"""GPU time of a project: sums by deployment, profile and day of one month, and the raw intervals behind each figure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from fleet.selectors.coverage import gaps
from fleet.selectors.usage import UsageLine, anomalies, intervals, month_bounds, usage_by, zone_of
from portal.kernel.clock import now
from portal.kernel.errors import InvalidInput
from portal.kernel.gpu_time import day_bounds, elapsed_us, hours
from portal.site.selectors.projects import deployment_names
from portal.tenancy.selectors.keyset import keyset_page
from portal.tenancy.selectors.projects import project_get

PAGE_SIZE = 100
_MONTH = re.compile(r"(2[01]\d\d)-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table. ``href`` leads to the intervals behind it; ``share`` is of the largest row, in thousandths."""

    name: str
    slots: Decimal
    equivalent: Decimal | None
    running: Decimal
    uncertain: Decimal
    open: bool
    query: str
    share: int
    deployment_id: str = ""


@require_safe
def usage(request: HttpRequest, public_id: str) -> HttpResponse:
    project = project_get(actor=request.actor, public_id=public_id)
    start, end = _month(request, project)
    month = _month_name(start, project)
    names = deployment_names(project=project)
    lines = {
        by: usage_by(project=project, period_start=start, period_end=end, dimension=by)
        for by in ("deployment", "profile", "day")
    }
    context = {
        "project": project,
        "month": month,
        "earlier": _month_name(start - timedelta(days=1), project),
        "later": _month_name(end, project) if end <= now() else "",
        "start": start,
        "end": end,
        "total": _line("", _total(lines["deployment"]), "", 0),
        "by_deployment": _lines(lines["deployment"], "deployment", month, names),
        "by_profile": _lines(lines["profile"], "profile", month, {}),
        "by_day": _lines(lines["day"], "day", month, {}),
        "gaps": gaps(period_start=start, period_end=end),
        "anomalies": anomalies(project=project, period_start=start, period_end=end),
    }
    return render(request, "site/usage.html", context)


@require_safe
def usage_intervals(request: HttpRequest, public_id: str) -> HttpResponse:
    """The raw intervals of a month or a day, of one deployment or profile where named; latest start first."""
    project = project_get(actor=request.actor, public_id=public_id)
    start, end = _day(request, project) or _month(request, project)
    filters = {name: request.GET[name] for name in ("month", "day", "deployment", "profile") if request.GET.get(name)}
    if request.GET.get("deployment") == "":
        filters["deployment"] = ""  # what belongs to nothing of ours
    found = intervals(
        project=project,
        period_start=start,
        period_end=end,
        consumer_id=filters.get("deployment"),
        profile_name=filters.get("profile"),
    )
    page = keyset_page(found, ordering="-started_at", size=PAGE_SIZE, cursor=request.GET.get("cursor") or None)
    names = deployment_names(project=project)
    rows = [
        {
            "row": row,
            "name": names.get(row.consumer_id, row.consumer_id),
            "known": row.consumer_id in names,
            "hours": hours(elapsed_us(row.started_at, row.ended_at) * row.devices) if row.ended_at else None,
            "uncertain": hours(row.uncertain_us * row.devices),
        }
        for row in page.rows
    ]
    context = {
        "project": project,
        "month": _month_name(start, project),
        "start": start,
        "end": end,
        "rows": rows,
        "filters": filters,
        "of": names.get(filters.get("deployment", ""), filters.get("profile", "")),
        "next_cursor": page.next_cursor,
    }
    return render(request, "site/usage_intervals.html", context)


def _month(request: HttpRequest, project: Any) -> tuple[datetime, datetime]:
    asked = request.GET.get("month", "")
    if not asked:
        return month_bounds(project, now())
    match = _MONTH.fullmatch(asked)
    if match is None:
        raise InvalidInput("A month is written like 2026-11.", fields={"month": ["Like 2026-11."]})
    return month_bounds(project, datetime(int(match[1]), int(match[2]), 15, tzinfo=UTC))


def _day(request: HttpRequest, project: Any) -> tuple[datetime, datetime] | None:
    asked = request.GET.get("day", "")
    if not asked:
        return None
    if not _MONTH.fullmatch(asked[:7]):
        raise InvalidInput("A day is written like 2026-11-30.", fields={"day": ["Like 2026-11-30."]})
    try:
        return day_bounds(date.fromisoformat(asked), zone_of(project))
    except ValueError as error:
        raise InvalidInput("A day is written like 2026-11-30.", fields={"day": ["Like 2026-11-30."]}) from error


def _month_name(at: datetime, project: Any) -> str:
    return f"{at.astimezone(zone_of(project)):%Y-%m}"


def _lines(found: list[UsageLine], by: str, month: str, names: dict[str, str]) -> list[Line]:
    most = max((line.slots_us for line in found), default=0)
    answer = []
    for line in found:
        name = names.get(line.key, line.key) or "nothing of Slipway's"
        query = {"day": line.key} if by == "day" else {"month": month, by: line.key}
        share = 1000 * line.slots_us // most if most else 0
        known = line.key if line.key in names else ""
        answer.append(_line(name, line, urlencode(query), share, known))
    return answer


def _line(name: str, line: UsageLine, query: str, share: int, deployment_id: str = "") -> Line:
    return Line(
        name=name,
        slots=hours(line.slots_us),
        equivalent=None if line.gpu_equiv_us is None else hours(line.gpu_equiv_us),
        running=hours(line.running_us),
        uncertain=hours(line.uncertain_us),
        open=line.open,
        query=query,
        share=share,
        deployment_id=deployment_id,
    )


def _total(lines: list[UsageLine]) -> UsageLine:
    """From the unrounded sums (K5)."""
    equivalents = [line.gpu_equiv_us for line in lines]
    return UsageLine(
        key="",
        slots_us=sum(line.slots_us for line in lines),
        gpu_equiv_us=None if None in equivalents else sum(value or 0 for value in equivalents),
        running_us=sum(line.running_us for line in lines),
        open=any(line.open for line in lines),
        uncertain_us=sum(line.uncertain_us for line in lines),
    )
