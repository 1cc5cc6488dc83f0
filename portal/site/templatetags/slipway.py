"""How times, numbers and states are written on every page: with units, zones and ages, and never by colour alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString

from portal.kernel.clock import now

register = template.Library()

TONES: dict[str, tuple[str, str]] = {
    # deployments
    "declared": ("info", "clock"),
    "admitted": ("info", "clock"),
    "loading": ("info", "loader"),
    "ready": ("good", "circle-check"),
    "serving": ("good", "activity"),
    "idle": ("quiet", "player-pause"),
    "draining": ("warn", "loader"),
    "degraded": ("warn", "alert-triangle"),
    "deleting": ("warn", "trash"),
    # requests
    "draft": ("quiet", "file-text"),
    "submitted": ("info", "clock"),
    "approved": ("info", "check"),
    "fulfilled": ("good", "circle-check"),
    "denied": ("bad", "circle-x"),
    "withdrawn": ("quiet", "x"),
    "expired": ("quiet", "clock"),
    "revoked": ("bad", "circle-x"),
    "failed": ("bad", "alert-circle"),
    # grants, keys, projects
    "pending": ("info", "clock"),
    "active": ("good", "circle-check"),
    "expiring": ("warn", "clock"),
    "closed": ("quiet", "lock"),
    # checks and conditions
    "ok": ("good", "circle-check"),
    "warn": ("warn", "alert-triangle"),
    "refuse": ("bad", "circle-x"),
    "true": ("good", "circle-check"),
    "false": ("bad", "circle-x"),
    # nodes
    "healthy": ("good", "circle-check"),
    "not ready": ("bad", "alert-circle"),
    "down": ("bad", "alert-circle"),
    "reachable": ("good", "circle-check"),
    "unreachable": ("bad", "alert-circle"),
    "cordoned": ("warn", "lock"),
}
UNSEEN = ("quiet", "help-circle")


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """An icon of the sprite; without ``label`` it is decoration and hidden from screen readers."""
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><use href="{}#{}"></use></svg>',
            label,
            static("slipway-icons.svg"),
            name,
        )
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', static("slipway-icons.svg"), name
    )


@register.simple_tag
def state(value: Any, kind: str = "", text: str = "") -> SafeString:
    """The badge of a state: colour, icon and word. ``kind`` becomes its test id, ``<kind>-state``."""
    word = str(getattr(value, "value", value) or "unknown")
    tone, symbol = TONES.get(word.lower(), UNSEEN)
    return format_html(
        '<span class="state state-{}"{} data-state="{}">{}{}</span>',
        tone,
        format_html(' data-testid="{}-state"', kind) if kind else "",
        word,
        icon(symbol),
        text or word.replace("_", " "),
    )


@register.simple_tag
def tone(value: Any) -> str:
    """The tone word of a state or verdict: good, warn, bad, info or quiet."""
    return TONES.get(str(getattr(value, "value", value)).lower(), UNSEEN)[0]


@register.simple_tag
def symbol(value: Any) -> str:
    """The icon name of a state or verdict."""
    return TONES.get(str(getattr(value, "value", value)).lower(), UNSEEN)[1]


@register.simple_tag
def age(at: Any, ago: bool = True) -> SafeString:
    """How long ago, counted on by the browser; the instant itself is in the title. A dash when there is none."""
    moment = _instant(at)
    if moment is None:
        return format_html('<span class="text-secondary">{}</span>', "–")
    text = span_text(now() - moment)
    return format_html(
        '<time datetime="{}" title="{}" data-age="{}">{}</time>',
        moment.isoformat(),
        f"{moment:%Y-%m-%d %H:%M:%S} UTC",
        "ago" if ago else "for",
        f"{text} ago" if ago and text != "now" else text,
    )


@register.simple_tag
def stamp(at: Any, zone: str = "UTC") -> SafeString:
    """An instant to the second, in ``zone`` and with its name."""
    moment = _instant(at)
    if moment is None:
        return format_html('<span class="text-secondary">{}</span>', "–")
    local = moment.astimezone(ZoneInfo(zone))
    return format_html(
        '<time class="text-nowrap" datetime="{}">{}</time>',
        moment.isoformat(),
        f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}",
    )


@register.simple_tag
def meter(used: int, total: int, label: str = "", warn: int = 101) -> SafeString:
    """A bar of ``used`` of ``total``: drawn as SVG, since the content policy allows no style attribute."""
    share = 0 if not total else max(0.0, min(1.0, used / total))
    over = used > total
    tone_word = "bad" if over else "warn" if share * 100 >= warn else "info"
    return format_html(
        '<svg class="meter meter-{}" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="meter-track" width="100" height="6" rx="1"></rect>'
        '<rect class="meter-fill" width="{}" height="6" rx="1"></rect></svg>',
        tone_word,
        label or f"{used} of {total}",
        f"{100 * share:.1f}",
    )


@register.simple_tag(takes_context=True)
def back_address(context: dict[str, Any]) -> str:
    """Where the reader came from, when that is one of our own pages; else home."""
    request = context["request"]
    page = request.headers.get("Referer", "")
    return page if url_has_allowed_host_and_scheme(page, allowed_hosts={request.get_host()}) else "/"


@register.filter
def gib(value: Any) -> str:
    """Bytes in GiB, without needless decimals."""
    try:
        amount = int(value) / 2**30
    except (TypeError, ValueError):
        return "unknown"
    return f"{amount:,.0f} GiB" if amount == int(amount) else f"{amount:,.1f} GiB"


@register.filter
def label(value: Any) -> str:
    """``fleet_operator`` as ``fleet operator``."""
    return str(getattr(value, "value", value)).replace("_", " ")


def span_text(span: timedelta) -> str:
    """An elapsed time in its largest sensible unit: now, 12 s, 3 min, 5 h, 12 d. The page's script writes the same."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 2:
        return "now"
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h"
    return f"{seconds // 86400} d"


def _instant(at: Any) -> datetime | None:
    if isinstance(at, str) and at:
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            return None
    if not isinstance(at, datetime):
        return None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
