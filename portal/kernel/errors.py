"""The errors every floor raises; entry points turn them into pages and into the one REST error shape.

Each carries ``code`` (stable, for machines), ``detail`` (one sentence for people that names the way out) and ``fields``
(field name -> messages). ``status`` is the HTTP status an entry point answers with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class SlipwayError(Exception):
    """Base of every error a caller may show as it is."""

    status = 500
    code = "error"

    def __init__(self, detail: str, *, code: str | None = None, fields: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.fields: dict[str, list[str]] = {name: list(messages) for name, messages in (fields or {}).items()}


class InvalidInput(SlipwayError):
    """A value breaks a rule; ``fields`` names each one."""

    status = 400
    code = "invalid"


class NotFound(SlipwayError):
    """The object does not exist for this actor (contract A1: also when it is another tenant's)."""

    status = 404
    code = "not_found"

    def __init__(self, detail: str = "Not found.", **kwargs: object) -> None:
        super().__init__(detail)


class Forbidden(SlipwayError):
    """The actor sees the object and may not do this to it."""

    status = 403
    code = "forbidden"


class Conflict(SlipwayError):
    """The object is no longer in the state this act needs, or a name is taken."""

    status = 409
    code = "conflict"


class Stale(SlipwayError):
    """The caller acted on an older version than the one that stands (If-Match, stale form)."""

    status = 412
    code = "stale"


class QuotaExceeded(SlipwayError):
    """A hold does not fit the grant or the fleet; nothing was changed."""

    status = 409
    code = "quota_exceeded"


class Unavailable(SlipwayError):
    """A part this needs is not there now; try again later."""

    status = 503
    code = "unavailable"
