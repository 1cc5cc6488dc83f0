"""Accounts of people: made and switched off by those who manage identities; nobody signs up alone."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.errors import Conflict, InvalidInput, NotFound
from portal.tenancy.domain.roles import Permission, PlatformRole
from portal.tenancy.models import User
from portal.tenancy.selectors.permissions import require_platform


def user_create(
    *,
    actor: Actor,
    email: str,
    name: str,
    password: str | None = None,
    platform_role: PlatformRole | str = PlatformRole.NONE,
) -> User:
    """A new person. Without ``password`` no local sign-in works. InvalidInput names a weak password's reasons."""
    require_platform(actor=actor, permission=Permission.ORGANIZATION_MANAGE)
    email, name = email.strip(), " ".join(name.split())
    role = _platform_role(platform_role)
    _check(email, name, password)
    with transaction.atomic(durable=True):
        try:
            with transaction.atomic():
                user = User.objects.create_user(email=email, name=name, password=password, platform_role=role.value)
        except IntegrityError as error:
            raise Conflict("There is an account with this address already.", fields={"email": ["Taken."]}) from error
        event_record(
            actor=actor,
            action="user.create",
            object_kind="user",
            object_id=user.public_id,
            after={"platform_role": role.value, "local_sign_in": password is not None},
        )
    return user


def user_role_set(*, actor: Actor, public_id: str, platform_role: PlatformRole | str) -> User:
    """Give a person another platform role, or none; the same again changes nothing."""
    require_platform(actor=actor, permission=Permission.ORGANIZATION_MANAGE)
    role = _platform_role(platform_role)
    with transaction.atomic(durable=True):
        user = _locked(public_id)
        before = user.platform_role
        if before == role.value:
            return user
        user.platform_role = role.value
        user.save(update_fields=["platform_role"])
        event_record(
            actor=actor,
            action="user.role_set",
            object_kind="user",
            object_id=user.public_id,
            before={"platform_role": before},
            after={"platform_role": role.value},
        )
    return user


def user_deactivate(*, actor: Actor, public_id: str, reason: str = "") -> User:
    """Switch an account off: no sign-in, no token and no permission of it works from here on. Safe to repeat."""
    require_platform(actor=actor, permission=Permission.ORGANIZATION_MANAGE)
    with transaction.atomic(durable=True):
        user = _locked(public_id)
        if not user.is_active:
            return user
        if user.pk == actor.user_pk:
            raise Conflict("You cannot switch off your own account: ask another platform admin.")
        user.is_active = False
        user.save(update_fields=["is_active"])
        event_record(
            actor=actor,
            action="user.deactivate",
            object_kind="user",
            object_id=user.public_id,
            before={"is_active": True},
            after={"is_active": False},
            reason=reason,
        )
    return user


def _locked(public_id: str) -> User:
    user = User.objects.select_for_update(of=("self",), no_key=True).filter(public_id=public_id).first()
    if user is None:
        raise NotFound
    return user


def _platform_role(role: PlatformRole | str) -> PlatformRole:
    try:
        return PlatformRole(role)
    except ValueError as error:
        known = ", ".join(role.value for role in PlatformRole if role.value)
        raise InvalidInput("The role is not known.", fields={"platform_role": [f"Empty or one of: {known}."]}) from error


def _check(email: str, name: str, password: str | None) -> None:
    problems: dict[str, list[str]] = {}
    try:
        validate_email(email)
    except ValidationError:
        problems["email"] = ["Not a valid e-mail address."]
    if not name or len(name) > 120:
        problems["name"] = ["1 to 120 characters."]
    if password is not None:
        try:
            validate_password(password, User(email=email, name=name))
        except ValidationError as error:
            problems["password"] = list(error.messages)
    if problems:
        raise InvalidInput("The account is not valid.", fields=problems)
