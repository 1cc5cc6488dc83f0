"""Pages: one row for each address."""

from __future__ import annotations

from tests.table.rows import Row

PAGE_ROWS: list[Row] = []
