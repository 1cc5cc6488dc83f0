"""May this actor do it, and which rows: two questions, one rule (contract A1), the table ``domain.roles.GRANTED``.

Services of Slipway itself (loops, commands) are let through: what they do was decided by a person before.
A token's scopes narrow what its owner may do, and never widen it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from portal.audit.domain.actors import Actor, Scope
from portal.kernel.errors import Conflict, Forbidden, NotFound
from portal.tenancy.domain.roles import (
    GRANTED,
    NEEDS_OPEN_PROJECT,
    READS,
    OrganizationRole,
    Permission,
    PlatformRole,
    ProjectRole,
    Role,
    roles_granting,
)
from portal.tenancy.models import Organization, OrganizationMembership, Project, ProjectMembership, ProjectState, User


def scope_allows(*, actor: Actor, permission: Permission) -> bool:
    """Whether the credential that ``actor`` came with covers ``permission`` at all, whoever owns it."""
    return (Scope.READ if permission in READS else Scope.WRITE) in actor.scopes


def projects_where(*, actor: Actor, permission: Permission) -> QuerySet[Project]:
    """The projects in which ``actor`` may do ``permission``; usable as a subquery.

    Closed ones are among them for what goes on there (reading, deleting, revoking), and for loops.
    """
    if actor.is_service:
        return Project.objects.all()
    if actor.user_pk is None or not scope_allows(actor=actor, permission=permission):
        return Project.objects.none()
    roles = roles_granting(permission)
    held = (
        Exists(_project_roles(actor, OuterRef("pk")).filter(role__in=_values(roles, ProjectRole)))
        | Exists(_organization_roles(actor, OuterRef("organization_id")).filter(role__in=_values(roles, OrganizationRole)))
        | Exists(_person(actor).filter(platform_role__in=_values(roles, PlatformRole)))
    )
    rows = Project.objects.filter(Q(held) & Q(Exists(_person(actor))))
    return rows.filter(state=ProjectState.ACTIVE.value) if permission in NEEDS_OPEN_PROJECT else rows


def organizations_where(*, actor: Actor, permission: Permission) -> QuerySet[Organization]:
    """The organizations in which ``actor`` may do ``permission`` by an organization or platform role."""
    if actor.is_service:
        return Organization.objects.all()
    if actor.user_pk is None or not scope_allows(actor=actor, permission=permission):
        return Organization.objects.none()
    roles = roles_granting(permission)
    held = Exists(_organization_roles(actor, OuterRef("pk")).filter(role__in=_values(roles, OrganizationRole))) | Exists(
        _person(actor).filter(platform_role__in=_values(roles, PlatformRole))
    )
    return Organization.objects.filter(Q(held) & Q(Exists(_person(actor))))


def organizations_seen(*, actor: Actor) -> QuerySet[Organization]:
    """The organizations that exist for ``actor``: those with a readable project, those it administers, or all for
    platform roles that manage or audit them (A1)."""
    if actor.is_service:
        return Organization.objects.all()
    return Organization.objects.filter(
        Q(pk__in=projects_where(actor=actor, permission=Permission.PROJECT_READ).values("organization_id"))
        | Q(pk__in=organizations_where(actor=actor, permission=Permission.PROJECT_CREATE).values("pk"))
        | Q(pk__in=organizations_where(actor=actor, permission=Permission.ORGANIZATION_MANAGE).values("pk"))
        | Q(pk__in=organizations_where(actor=actor, permission=Permission.AUDIT_READ).values("pk"))
    )


def actor_may(
    *,
    actor: Actor,
    permission: Permission,
    project: Project | None = None,
    organization: Organization | None = None,
) -> bool:
    """Whether ``actor`` may do ``permission`` in ``project``, or in ``organization``, or on the platform."""
    if actor.is_service:
        return True
    if project is not None:
        return permission in permissions_of(actor=actor, project=project)
    if organization is not None:
        return organizations_where(actor=actor, permission=permission).filter(pk=organization.pk).exists()
    return permission in platform_permissions(actor=actor)


def permissions_of(*, actor: Actor, project: Project) -> frozenset[Permission]:
    """Everything ``actor`` may do in ``project`` now, in one query: for pages that offer only what is allowed."""
    if actor.is_service:
        return frozenset(Permission)
    if actor.user_pk is None:
        return frozenset()
    return _by_project(actor, Project.objects.filter(pk=project.pk)).get(project.pk, _NOTHING).now


def permissions_by_project(*, actor: Actor) -> dict[int, frozenset[Permission]]:
    """Primary key of each readable project -> what ``actor`` may do there, in one query: for lists that span projects."""
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ)
    return {pk: held.now for pk, held in _by_project(actor, readable).items()}


def platform_permissions(*, actor: Actor) -> frozenset[Permission]:
    """What ``actor`` may do by its platform role, on the platform's own objects."""
    if actor.is_service:
        return frozenset(Permission)
    role = _person(actor).values_list("platform_role", flat=True).first() if actor.user_pk is not None else None
    granted = GRANTED[PlatformRole(role)] if role else frozenset[Permission]()
    return frozenset(permission for permission in granted if scope_allows(actor=actor, permission=permission))


def require(*, actor: Actor, permission: Permission, project: Project) -> None:
    """Raise unless ``actor`` may do ``permission`` in ``project``.

    NotFound when the project does not exist for the actor (A1), Forbidden when it is seen and the role or the token's
    scope does not allow the act, Conflict when the project is closed and the act needs an open one.
    """
    closed = project.state == ProjectState.CLOSED
    if not actor.is_service:
        held = _by_project(actor, Project.objects.filter(pk=project.pk)).get(project.pk, _NOTHING)
        if permission not in held.by_role:
            if Permission.PROJECT_READ not in held.by_role:
                raise NotFound
            raise Forbidden(_refusal(actor, permission, f"project {project.name}"))
        closed = permission not in held.now
    if permission in NEEDS_OPEN_PROJECT and closed:
        raise Conflict(f"Project {project.name} is closed: nothing new happens in it.", code="project_closed")


def require_organization(*, actor: Actor, permission: Permission, organization: Organization) -> None:
    """Raise NotFound or Forbidden unless ``actor`` may do ``permission`` in ``organization``."""
    if actor_may(actor=actor, permission=permission, organization=organization):
        return
    if not organizations_seen(actor=actor).filter(pk=organization.pk).exists():
        raise NotFound
    raise Forbidden(_refusal(actor, permission, f"organization {organization.name}"))


def require_platform(*, actor: Actor, permission: Permission) -> None:
    """Raise Forbidden unless ``actor`` may do ``permission`` by a platform role."""
    if not actor_may(actor=actor, permission=permission):
        raise Forbidden(_refusal(actor, permission, "the platform"))


def _refusal(actor: Actor, permission: Permission, where: str) -> str:
    if not scope_allows(actor=actor, permission=permission):
        return f"This token has no write scope, and {permission.value} changes something: use a token with the write scope."
    roles = ", ".join(sorted(role.value.replace("_", " ") for role in roles_granting(permission)))
    return f"Your role in {where} does not allow {permission.value}; it takes one of: {roles}."


@dataclass(frozen=True, slots=True)
class _Held:
    """What the roles allow in a project, and of that what may be done now, which in a closed one is less."""

    by_role: frozenset[Permission]
    now: frozenset[Permission]


_NOTHING = _Held(by_role=frozenset(), now=frozenset())


def _by_project(actor: Actor, projects: QuerySet[Project]) -> dict[int, _Held]:
    rows = projects.annotate(
        held_project_roles=ArraySubquery(_project_roles(actor, OuterRef("pk")).values("role")),
        held_organization_roles=ArraySubquery(_organization_roles(actor, OuterRef("organization_id")).values("role")),
        held_platform_role=Subquery(_person(actor).values("platform_role")[:1]),
    ).values_list("pk", "state", "held_project_roles", "held_organization_roles", "held_platform_role")
    answer: dict[int, _Held] = {}
    for pk, state, project_roles, organization_roles, platform_role in rows:
        if platform_role is None:  # no such active person
            continue
        roles: list[Role] = [
            *(ProjectRole(role) for role in project_roles),
            *(OrganizationRole(role) for role in organization_roles),
            PlatformRole(platform_role),
        ]
        granted = frozenset(permission for role in roles for permission in GRANTED[role])
        allowed = frozenset(permission for permission in granted if scope_allows(actor=actor, permission=permission))
        answer[pk] = _Held(allowed, allowed - NEEDS_OPEN_PROJECT if state == ProjectState.CLOSED else allowed)
    return answer


def _user_pk(actor: Actor) -> int:
    """0 is nobody's key: an actor without a person finds no row."""
    return actor.user_pk or 0


def _person(actor: Actor) -> QuerySet[User]:
    return User.objects.filter(pk=_user_pk(actor), is_active=True)


def _project_roles(actor: Actor, project: OuterRef) -> QuerySet[ProjectMembership]:
    return ProjectMembership.objects.filter(user_id=_user_pk(actor), project_id=project)


def _organization_roles(actor: Actor, organization: OuterRef) -> QuerySet[OrganizationMembership]:
    return OrganizationMembership.objects.filter(user_id=_user_pk(actor), organization_id=organization)


def _values(roles: frozenset[Role], kind: type[ProjectRole] | type[OrganizationRole] | type[PlatformRole]) -> list[str]:
    return [role.value for role in roles if isinstance(role, kind)]
