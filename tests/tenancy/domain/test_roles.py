"""The role table of contract §3, row by row."""

import pytest

from portal.tenancy.domain.roles import (
    GRANTED,
    NEEDS_OPEN_PROJECT,
    READS,
    OrganizationRole,
    Permission,
    PlatformRole,
    ProjectRole,
    roles_granting,
)

ALL_ROLES = [*ProjectRole, *OrganizationRole, *PlatformRole]


def test_every_role_has_its_row():
    assert set(GRANTED) == set(ALL_ROLES)


@pytest.mark.parametrize("role", [ProjectRole.VIEWER, PlatformRole.AUDITOR])
def test_readers_write_nothing(role):
    assert GRANTED[role] <= READS


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        (ProjectRole.VIEWER, ProjectRole.MEMBER),
        (ProjectRole.MEMBER, ProjectRole.LEAD),
        (ProjectRole.LEAD, OrganizationRole.ADMIN),
    ],
)
def test_each_role_adds_to_the_one_below(smaller, larger):
    assert GRANTED[smaller] < GRANTED[larger]


def test_a_member_decides_nothing():
    assert not any(permission.value.startswith("request.decide") for permission in GRANTED[ProjectRole.MEMBER])


def test_grants_are_decided_by_organization_administrators_only():
    assert roles_granting(Permission.REQUEST_DECIDE_GRANT) == {OrganizationRole.ADMIN}


def test_deployments_are_decided_by_leads_and_administrators():
    assert roles_granting(Permission.REQUEST_DECIDE_DEPLOYMENT) == {ProjectRole.LEAD, OrganizationRole.ADMIN}


@pytest.mark.parametrize("role", [PlatformRole.PLATFORM_ADMIN, PlatformRole.FLEET_OPERATOR])
def test_the_platform_acts_inside_no_tenant(role):
    tenants = {permission for permission in Permission if permission in GRANTED[OrganizationRole.ADMIN]}
    assert not GRANTED[role] & tenants


@pytest.mark.parametrize("permission", list(Permission))
def test_every_permission_is_granted_to_somebody_and_both_directions_agree(permission):
    holders = roles_granting(permission)
    assert holders
    for role in ALL_ROLES:
        assert (role in holders) == (permission in GRANTED[role])


def test_a_closed_project_still_reads_deletes_and_revokes():
    assert not NEEDS_OPEN_PROJECT & READS
    assert Permission.DEPLOYMENT_DELETE not in NEEDS_OPEN_PROJECT
    assert Permission.GRANT_REVOKE not in NEEDS_OPEN_PROJECT
