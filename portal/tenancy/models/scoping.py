"""Fail-closed tenancy: a query on tenant rows that names no project raises, in production too.

A tenant model has ``project = ForeignKey(Project)`` and ``objects = TenantManager()``. A query is scoped by
``for_project``/``for_projects``, or by being inside ``unscoped("why")``, which a reader can find.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeVar

from django.db import models

if TYPE_CHECKING:
    from portal.tenancy.models.organizations import Project

_Row = TypeVar("_Row", bound=models.Model, covariant=True)

_unscoped_why: ContextVar[str] = ContextVar("slipway_unscoped_why", default="")


class UnscopedQuery(RuntimeError):
    """A query on tenant rows named no project."""


@contextmanager
def unscoped(why: str) -> Iterator[None]:
    """Allow queries across tenants in the block; ``why`` says for what."""
    if not why:
        raise ValueError("unscoped() needs a reason")
    token = _unscoped_why.set(why)
    try:
        yield
    finally:
        _unscoped_why.reset(token)


class TenantQuerySet(models.QuerySet[_Row]):
    """A queryset that refuses to run before it was given projects."""

    _tenant_scoped = False

    def for_project(self, project: Project) -> Self:
        return self._scoped(self.filter(project=project))

    def for_projects(self, projects: models.QuerySet[Project]) -> Self:
        """``projects`` is a subquery, usually what an actor may read."""
        return self._scoped(self.filter(project__in=projects))

    def _scoped(self, queryset: Self) -> Self:
        queryset._tenant_scoped = True
        return queryset

    def _clone(self) -> Self:
        clone: Self = super()._clone()  # type: ignore[misc]
        clone._tenant_scoped = self._tenant_scoped
        return clone

    def __or__(self, other: models.QuerySet[_Row]) -> Self:
        return self._scoped_by_both(super().__or__(other), other)

    def __xor__(self, other: models.QuerySet[_Row]) -> Self:
        return self._scoped_by_both(super().__xor__(other), other)

    def _combinator_query(self, combinator: str, *others: models.QuerySet[_Row], all: bool = False) -> Self:
        combined: Self = super()._combinator_query(combinator, *others, all=all)  # type: ignore[misc]
        for other in others:
            combined = self._scoped_by_both(combined, other)
        return combined

    def _scoped_by_both(self, combined: Self, other: models.QuerySet[_Row]) -> Self:
        """Joining a scoped query to one that is not would let foreign rows in by the second."""
        both = self._tenant_scoped and isinstance(other, TenantQuerySet) and other._tenant_scoped
        combined._tenant_scoped = combined._tenant_scoped and both
        return combined

    def _require_scope(self) -> None:
        if not (self._tenant_scoped or _unscoped_why.get()):
            raise UnscopedQuery(
                f"{self.model.__name__}: name the project with for_project() or for_projects(), "
                'or say why not with unscoped("…")'
            )

    def _fetch_all(self) -> None:
        if self._result_cache is None:
            self._require_scope()
        super()._fetch_all()

    def iterator(self, chunk_size: int | None = None) -> Iterator[_Row]:
        self._require_scope()
        return super().iterator(chunk_size=chunk_size or 2000)

    def aiterator(self, chunk_size: int = 2000) -> AsyncIterator[_Row]:
        self._require_scope()
        return super().aiterator(chunk_size=chunk_size)

    def count(self) -> int:
        self._require_scope()
        return super().count()

    def exists(self) -> bool:
        self._require_scope()
        return super().exists()

    def aggregate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self._require_scope()
        return super().aggregate(*args, **kwargs)

    def update(self, **kwargs: Any) -> int:
        self._require_scope()
        return super().update(**kwargs)

    def delete(self) -> tuple[int, dict[str, int]]:
        self._require_scope()
        return super().delete()


class TenantManager(models.Manager.from_queryset(TenantQuerySet)):  # type: ignore[misc]
    """``Model.objects`` of every tenant model."""
