"""What the meter dropped, and why (contract K7): never silently, never as a negative or endless interval."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """One row per pod and kind in the anomaly table."""

    NULL_STAMP = "null_stamp"
    UNREADABLE_STAMP = "unreadable_stamp"
    YEAR_OUT_OF_RANGE = "year_out_of_range"
    END_BEFORE_START = "end_before_start"
    END_IN_FUTURE = "end_in_future"
    NO_START = "no_start"
    NO_END = "no_end"
    BAD_QUANTITY = "bad_quantity"


@dataclass(frozen=True, slots=True)
class Finding:
    """``detail`` names the field and the value as it was written."""

    kind: FindingKind
    detail: str
