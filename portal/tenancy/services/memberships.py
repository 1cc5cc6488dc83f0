"""Manual memberships. Those that an identity provider made are never touched here (contract A1)."""

from __future__ import annotations

from django.db import transaction

from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.errors import Conflict, InvalidInput, NotFound
from portal.tenancy.domain.roles import OrganizationRole, Permission, ProjectRole
from portal.tenancy.models import (
    Organization,
    OrganizationMembership,
    Project,
    ProjectMembership,
    Source,
    User,
)
from portal.tenancy.selectors.permissions import require, require_platform


def membership_set(*, actor: Actor, project: Project, email: str, role: ProjectRole | str) -> ProjectMembership:
    """Give the person with ``email`` the ``role`` in ``project``, or change it; the same role again changes nothing."""
    require(actor=actor, permission=Permission.MEMBER_MANAGE, project=project)
    wanted = _role(role)
    with transaction.atomic(durable=True):
        user = _person(email)
        membership, made = ProjectMembership.objects.select_for_update(of=("self",), no_key=True).get_or_create(
            project=project, user=user, source=Source.MANUAL.value, defaults={"role": wanted.value}
        )
        before = None if made else membership.role
        if not made and before == wanted.value:
            return membership
        if not made:
            membership.role = wanted.value
            membership.save(update_fields=["role"])
        _record(actor, "membership.set", project, user, before, wanted.value)
    return membership


def membership_remove(*, actor: Actor, project: Project, user_public_id: str) -> None:
    """Take the manual membership away; NotFound when there is none, Conflict when it follows the identity provider."""
    require(actor=actor, permission=Permission.MEMBER_MANAGE, project=project)
    with transaction.atomic(durable=True):
        memberships = {
            membership.source: membership
            for membership in ProjectMembership.objects.select_for_update(of=("self",), no_key=True)
            .select_related("user")
            .filter(project=project, user__public_id=user_public_id)
        }
        manual = memberships.get(Source.MANUAL.value)
        if manual is None:
            if memberships:
                raise Conflict("This membership follows the identity provider: change the group there.")
            raise NotFound
        user, role = manual.user, manual.role
        manual.delete()
        _record(actor, "membership.remove", project, user, role, None)


def organization_membership_set(*, actor: Actor, organization: Organization, email: str) -> OrganizationMembership:
    """Make the person with ``email`` an administrator of ``organization``. Platform admins only."""
    require_platform(actor=actor, permission=Permission.ORGANIZATION_MANAGE)
    with transaction.atomic(durable=True):
        user = _person(email)
        membership, made = OrganizationMembership.objects.get_or_create(
            organization=organization,
            user=user,
            source=Source.MANUAL.value,
            defaults={"role": OrganizationRole.ADMIN.value},
        )
        if made:
            _record_organization(actor, "organization_membership.set", organization, user, None, membership.role)
    return membership


def organization_membership_remove(*, actor: Actor, organization: Organization, user_public_id: str) -> None:
    """Take the manual administrator role away. Platform admins only."""
    require_platform(actor=actor, permission=Permission.ORGANIZATION_MANAGE)
    with transaction.atomic(durable=True):
        membership = (
            OrganizationMembership.objects.select_for_update(of=("self",), no_key=True)
            .select_related("user")
            .filter(organization=organization, user__public_id=user_public_id, source=Source.MANUAL.value)
            .first()
        )
        if membership is None:
            raise NotFound
        user, role = membership.user, membership.role
        membership.delete()
        _record_organization(actor, "organization_membership.remove", organization, user, role, None)


def _role(role: ProjectRole | str) -> ProjectRole:
    try:
        return ProjectRole(role)
    except ValueError as error:
        known = ", ".join(ProjectRole)
        raise InvalidInput("The role is not known.", fields={"role": [f"One of: {known}."]}) from error


def _person(email: str) -> User:
    user = User.objects.filter(email__iexact=email.strip(), is_active=True).first()
    if user is None:
        raise InvalidInput(
            "Nobody has this address.", fields={"email": ["No active account with this address: have it made first."]}
        )
    return user


def _record(actor: Actor, action: str, project: Project, user: User, before: str | None, after: str | None) -> None:
    event_record(
        actor=actor,
        action=action,
        object_kind="membership",
        object_id=user.public_id,
        project_id=project.public_id,
        organization_id=project.organization.public_id,
        before={"role": before} if before is not None else None,
        after={"role": after} if after is not None else None,
    )


def _record_organization(
    actor: Actor, action: str, organization: Organization, user: User, before: str | None, after: str | None
) -> None:
    event_record(
        actor=actor,
        action=action,
        object_kind="organization_membership",
        object_id=user.public_id,
        organization_id=organization.public_id,
        before={"role": before} if before is not None else None,
        after={"role": after} if after is not None else None,
    )
