from hypothesis import given
from hypothesis import strategies as st

from portal.kernel.names import DNS_LABEL
from portal.tenancy.domain.namespaces import NAMESPACE_MAX, namespace_candidates

slugs = st.from_regex(r"\A[a-z](-?[a-z0-9]){0,19}\Z")


@given(organization=slugs, project=slugs)
def test_every_candidate_is_a_label_that_fits_and_none_repeats(organization, project):
    names = list(namespace_candidates(organization, project))
    assert len(set(names)) == len(names)
    for name in names:
        assert DNS_LABEL.fullmatch(name)
        assert len(name) <= NAMESPACE_MAX


def test_the_first_is_readable():
    assert next(namespace_candidates("acme", "vision")) == "sw-acme-vision"


def test_slugs_that_join_alike_differ_from_the_second_on():
    one, other = list(namespace_candidates("a-b", "c")), list(namespace_candidates("a", "b-c"))
    assert one[0] == other[0]
    assert not set(one[1:]) & set(other)


@given(organization=slugs, project=slugs)
def test_no_namespace_of_a_cluster_is_ever_taken(organization, project):
    for name in namespace_candidates(organization, project):
        assert name.startswith("sw-")
        assert not name.startswith(("kube-", "default", "openshift"))
