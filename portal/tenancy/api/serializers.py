"""What the tenancy endpoints take and give. Shape only: services decide."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.audit.domain.actors import Scope
from portal.tenancy.api.fields import NamedSerializer, Text
from portal.tenancy.domain.roles import OrganizationRole, Permission, PlatformRole, ProjectRole


class OrganizationSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    slug = serializers.CharField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


class OrganizationInput(serializers.Serializer[Any]):
    name = Text(max_length=120, allow_blank=False)
    slug = Text(max_length=40, required=False, default="", help_text="Made from the name when empty.")


class ProjectSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    organization = NamedSerializer()
    slug = serializers.CharField()
    name = serializers.CharField()
    namespace = serializers.CharField(help_text="Its namespace on every cluster; never changes.")
    time_zone = serializers.CharField(help_text="The IANA zone its days and months are counted in.")
    state = serializers.ChoiceField(choices=["active", "closed"])
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class ProjectInput(serializers.Serializer[Any]):
    organization = serializers.CharField(max_length=63, help_text="Public id.")
    name = Text(max_length=120, allow_blank=False)
    slug = Text(max_length=40, required=False, default="", help_text="Made from the name when empty.")
    time_zone = serializers.CharField(max_length=64, required=False, default="UTC")


class ProjectChange(serializers.Serializer[Any]):
    name = Text(max_length=120, allow_blank=False)
    time_zone = serializers.CharField(max_length=64, required=False, default=None, allow_null=True)


class PersonSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    email = serializers.CharField()


class MemberSerializer(serializers.Serializer[Any]):
    person = PersonSerializer(source="user")
    role = serializers.ChoiceField(choices=[role.value for role in ProjectRole])
    source = serializers.ChoiceField(
        choices=["manual", "identity_provider"], help_text="Manual ones are never touched by the identity provider."
    )
    created_at = serializers.DateTimeField()


class MemberInput(serializers.Serializer[Any]):
    email = serializers.EmailField(max_length=254)
    role = serializers.ChoiceField(choices=[role.value for role in ProjectRole])


class AdministratorSerializer(serializers.Serializer[Any]):
    person = PersonSerializer(source="user")
    role = serializers.ChoiceField(choices=[role.value for role in OrganizationRole])
    source = serializers.ChoiceField(choices=["manual", "identity_provider"])
    created_at = serializers.DateTimeField()


class AdministratorInput(serializers.Serializer[Any]):
    email = serializers.EmailField(max_length=254)


class UserSerializer(PersonSerializer):
    platform_role = serializers.ChoiceField(choices=[role.value for role in PlatformRole])
    is_active = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class UserInput(serializers.Serializer[Any]):
    email = serializers.EmailField(max_length=254)
    name = Text(max_length=120, allow_blank=False)
    password = serializers.CharField(
        max_length=200,
        required=False,
        default=None,
        allow_null=True,
        trim_whitespace=False,
        help_text="None: no local sign-in.",
    )
    platform_role = serializers.ChoiceField(choices=[role.value for role in PlatformRole], required=False, default="")


class UserChange(serializers.Serializer[Any]):
    platform_role = serializers.ChoiceField(choices=[role.value for role in PlatformRole])


class TokenSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How the secret begins.")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=[scope.value for scope in Scope]))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewTokenSerializer(TokenSerializer):
    secret = serializers.CharField(allow_null=True, help_text="Shown once: null when the answer is a repeat.")


class TokenInput(serializers.Serializer[Any]):
    name = Text(max_length=80, allow_blank=False)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=[scope.value for scope in Scope]), max_length=8)
    expires_in_days = serializers.IntegerField(min_value=1, max_value=365)


class MeSerializer(serializers.Serializer[Any]):
    person = PersonSerializer()
    platform_role = serializers.ChoiceField(choices=[role.value for role in PlatformRole])
    platform_permissions = serializers.ListField(
        child=serializers.ChoiceField(choices=[permission.value for permission in Permission])
    )
    token = serializers.CharField(allow_null=True, help_text="Public id of the token this call was made with.")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=[scope.value for scope in Scope]))
