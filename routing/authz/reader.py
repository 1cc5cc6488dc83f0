"""Reads the route table on the gateway's one database thread, which keeps its connection between readings."""

from __future__ import annotations

from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from routing.domain.table import RouteTable
from routing.selectors.snapshot import route_table_read


def read_route_table() -> RouteTable:
    """A new table; a connection that failed is dropped, so that the next reading opens another."""
    close_old_connections()
    try:
        return route_table_read()
    except DatabaseError:
        connection.close()
        raise
