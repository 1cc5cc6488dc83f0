from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.spaces import GrantShare, SpaceSpec, fence, follows_generation, group_of, rendered
from fleet.domain.stamps import Owner, generation_of, hash_of, owner_of

OWNER = Owner("space", "spc_1", "prj_1")
SPEC = SpaceSpec(
    OWNER,
    "sw-lab",
    ("amd.com/gpu", "nvidia.com/gpu"),
    (GrantShare("nvidia.com/gpu", 8, 3), GrantShare("nvidia.com/gpu", 0, 2)),
)
shares = st.lists(
    st.builds(
        GrantShare, st.sampled_from(["nvidia.com/gpu", "amd.com/gpu", "x.org/a"]), st.integers(0, 99), st.integers(0, 99)
    )
)


def by_kind() -> dict[str, dict]:  # type: ignore[type-arg]
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in rendered(SPEC, generation=4, request_id="r")}


def test_the_namespace_comes_first_and_everything_else_lives_in_it() -> None:
    first, *rest = rendered(SPEC, generation=4)
    assert (first["kind"], first["metadata"]["name"]) == ("Namespace", "sw-lab")
    assert {item["metadata"]["namespace"] for item in rest} == {"sw-lab"}


def test_every_object_is_stamped() -> None:
    for item in rendered(SPEC, generation=4):
        assert owner_of(item) == OWNER
        assert generation_of(item) == 4


def test_pods_there_are_restricted() -> None:
    labels = by_kind()["Namespace/sw-lab"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_q2_the_fence_carries_grants_and_held_surge_and_closes_what_was_not_granted() -> None:
    hard = by_kind()["ResourceQuota/slipway-fence"]["spec"]["hard"]
    assert hard == {"requests.amd.com/gpu": "0", "requests.nvidia.com/gpu": "10"}


@given(shares)
def test_q2_the_fence_never_refuses_what_was_admitted(given_shares: list[GrantShare]) -> None:
    totals = fence(given_shares)
    for resource, devices in totals.items():
        of_it = [share for share in given_shares if share.resource_name == resource]
        assert devices >= sum(share.held for share in of_it)
        assert devices >= sum(share.nominal for share in of_it)
        assert devices <= sum(share.held + share.nominal for share in of_it)


@given(shares, st.integers(0, 5))
def test_lowering_a_grant_below_what_is_held_does_not_lower_the_fence_below_it(
    given_shares: list[GrantShare], lowered: int
) -> None:
    lower = [GrantShare(share.resource_name, min(lowered, share.nominal), share.held) for share in given_shares]
    for resource, devices in fence(lower).items():
        assert devices >= sum(share.held for share in given_shares if share.resource_name == resource)


def test_everything_is_denied_but_what_serving_needs() -> None:
    objects = by_kind()
    deny = objects["NetworkPolicy/slipway-deny"]["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    serving = objects["NetworkPolicy/slipway-serving"]["spec"]
    assert serving["podSelector"]["matchLabels"]["slipway/kind"] == "deployment"
    (way_in,) = serving["ingress"]
    assert way_in["from"] == [{"namespaceSelector": {"matchLabels": {"slipway/gateway": "true"}}}]
    assert way_in["ports"] == [{"protocol": "TCP", "port": "http"}]


def test_the_projects_group_reads() -> None:
    binding = by_kind()["RoleBinding/slipway-project"]
    assert binding["subjects"][0]["name"] == group_of("prj_1") == "slipway:prj_1"
    assert binding["roleRef"]["name"] == "view"


def test_only_the_fence_follows_the_row() -> None:
    richer = SpaceSpec(OWNER, "sw-lab", ("nvidia.com/gpu",), (GrantShare("nvidia.com/gpu", 99, 0),))
    for one, other in zip(rendered(SPEC, generation=1), rendered(richer, generation=2), strict=True):
        assert follows_generation(one) is (hash_of(one) != hash_of(other))
