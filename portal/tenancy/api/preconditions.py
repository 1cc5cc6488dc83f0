"""ETag and If-Match on the version column: a write on an older version than the one that stands answers 412.

The tag names the row's version, ``"7"``, which goes up at every write of people (not at every observation), so it is no
cache validator and no 304 is given for it. A compressing middleware or proxy may weaken it on the way out, so
``W/"7"`` is taken back as ``"7"``.
"""

from __future__ import annotations

import re

from rest_framework.request import Request

from portal.kernel.errors import InvalidInput
from portal.tenancy.api.errors import PreconditionRequired

_TAG = re.compile(r'(?:W/)?"(\d{1,9})"')


def etag(version: int) -> dict[str, str]:
    """The response header for a row at ``version``."""
    return {"ETag": f'"{version}"'}


def expected_version(request: Request, *, required: bool = False) -> int | None:
    """The version the caller says it saw; None for ``*`` and, unless ``required``, when it says nothing.

    PreconditionRequired (428) when it must say and does not, InvalidInput when the header is not one of our tags.
    """
    header = request.headers.get("If-Match", "").strip()
    if header == "*":
        return None
    if not header:
        if required:
            raise PreconditionRequired(
                "Send If-Match with the ETag that you read, so that no change is overwritten unseen; If-Match: * insists."
            )
        return None
    match = _TAG.fullmatch(header)
    if match is None:
        raise InvalidInput(
            'If-Match must be the ETag of one earlier answer, such as "7", or *.',
            fields={"If-Match": ["Not an ETag of ours."]},
        )
    return int(match[1])
