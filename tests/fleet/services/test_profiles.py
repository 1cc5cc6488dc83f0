import pytest

from fleet.models import CompatibilityCell, GpuProfile
from fleet.selectors.profiles import cluster_get, cluster_list, profile_get, profile_list
from fleet.services.clusters import cluster_create, cluster_enable
from fleet.services.profiles import cell_set, profile_create, profile_update
from portal.audit.models import AuditEvent
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale
from tests.cast import IMAGE, make_profile

GOOD = {
    "name": "gfx1100",
    "title": "Radeon RX 7900 XTX",
    "vendor": "amd",
    "architecture": "gfx1100",
    "product": "AMD_Radeon_RX_7900_XTX",
    "resource_name": "amd.com/gpu",
    "vram_bytes": 24 * 2**30,
    "node_selector": {"amd.com/gpu.product-name": "AMD_Radeon_RX_7900_XTX"},
}


def test_an_operator_makes_a_profile_with_its_matrix(cast, act):
    profile = profile_create(actor=act("fleet_operator"), **GOOD)
    cell_set(
        actor=act("fleet_operator"),
        profile_public_id=profile.public_id,
        backend="llamacpp",
        model_format="gguf",
        support="full",
        image=IMAGE,
        environment={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"},
        tested_on_node="amd-1",
    )
    cell_set(
        actor=act("fleet_operator"),
        profile_public_id=profile.public_id,
        backend="vllm",
        model_format="safetensors",
        support="unsupported",
        reason="No kernels.",
    )
    found = profile_get(ref="gfx1100")
    assert found == profile_get(ref=profile.public_id)
    assert [(cell.backend, cell.support) for cell in found.cells.all()] == [("llamacpp", "full"), ("vllm", "unsupported")]
    cell = found.cells.get(backend="llamacpp")
    assert (cell.tested_by, cell.tested_on_node) == (cast.fleet_operator.public_id, "amd-1")
    assert cell.tested_at is not None
    assert found.version == 3
    actions = AuditEvent.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["profile.create", "profile.cell_set", "profile.cell_set"]


@pytest.mark.parametrize("name", ["lead", "org_admin", "auditor", "platform_admin"])
def test_nobody_else_changes_the_fleet(cast, act, name):
    profile = make_profile()
    with pytest.raises(Forbidden):
        profile_create(actor=act(name), **GOOD)
    with pytest.raises(Forbidden):
        profile_update(actor=act(name), public_id=profile.public_id, title="x")
    with pytest.raises(Forbidden):
        cell_set(
            actor=act(name),
            profile_public_id=profile.public_id,
            backend="b",
            model_format="f",
            support="unsupported",
        )
    with pytest.raises(Forbidden):
        cluster_create(actor=act(name), name="east")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Not good"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 41}, "name"),
        ({"title": ""}, "title"),
        ({"resource_name": "gpu"}, "resource_name"),
        ({"resource_name": "nvidia.com/"}, "resource_name"),
        ({"vram_bytes": 0}, "vram_bytes"),
        ({"vram_bytes": "24Gi"}, "vram_bytes"),
        ({"node_selector": {}}, "node_selector"),
        ({"node_selector": {"a": 1}}, "node_selector"),
    ],
)
def test_bad_profiles_name_their_field(cast, act, changes, field):
    with pytest.raises(InvalidInput) as caught:
        profile_create(actor=act("fleet_operator"), **{**GOOD, **changes})
    assert list(caught.value.fields) == [field]
    assert not GpuProfile.objects.exists()


@pytest.mark.parametrize(
    "image",
    ["", "registry.invalid/llama.cpp:latest", "llama.cpp@sha256:abc", "x@sha256:" + "A" * 64, "a b@sha256:" + "a" * 64],
)
def test_an_unpinned_image_is_refused(cast, act, image):
    profile = make_profile(cells=False)
    with pytest.raises(InvalidInput) as caught:
        cell_set(
            actor=act("fleet_operator"),
            profile_public_id=profile.public_id,
            backend="vllm",
            model_format="safetensors",
            support="experimental",
            image=image,
        )
    assert list(caught.value.fields) == ["image"]
    assert not CompatibilityCell.objects.exists()


def test_an_unknown_support_is_refused(cast, act):
    with pytest.raises(InvalidInput):
        cell_set(
            actor=act("fleet_operator"),
            profile_public_id=make_profile().public_id,
            backend="vllm",
            model_format="safetensors",
            support="maybe",
            image=IMAGE,
        )


def test_a_change_raises_the_version_once(cast, act):
    profile = make_profile()
    profile_update(actor=act("fleet_operator"), public_id=profile.public_id, version=1, title="H100 SXM")
    profile_update(actor=act("fleet_operator"), public_id=profile.public_id, title="H100 SXM")
    assert GpuProfile.objects.get().version == 2
    event = AuditEvent.objects.get()
    assert (event.action, event.after["title"]) == ("profile.update", "H100 SXM")
    with pytest.raises(Stale):
        profile_update(actor=act("fleet_operator"), public_id=profile.public_id, version=1, title="x")
    with pytest.raises(InvalidInput):
        profile_update(actor=act("fleet_operator"), public_id=profile.public_id, name="other")
    with pytest.raises(InvalidInput):
        profile_update(actor=act("fleet_operator"), public_id=profile.public_id, vram_bytes=-1)
    with pytest.raises(NotFound):
        profile_update(actor=act("fleet_operator"), public_id="gpu_nope", title="x")


def test_the_same_cell_again_writes_nothing(cast, act):
    profile = make_profile()
    before = profile.version
    cell_set(
        actor=act("fleet_operator"),
        profile_public_id=profile.public_id,
        backend="llamacpp",
        model_format="gguf",
        support="full",
        image=IMAGE,
    )
    profile.refresh_from_db()
    assert profile.version == before
    assert not AuditEvent.objects.exists()


def test_a_taken_name_is_a_conflict(cast, act):
    profile_create(actor=act("fleet_operator"), **GOOD)
    with pytest.raises(Conflict):
        profile_create(actor=act("fleet_operator"), **GOOD)


def test_profiles_are_listed_with_their_cells_in_two_queries(cast, act, django_assert_num_queries):
    for number in range(20):
        make_profile(f"p{number:02}", enabled=number % 2 == 0)
    with django_assert_num_queries(2):
        assert len([len(profile.cells.all()) for profile in profile_list()]) == 20
    assert profile_list(enabled_only=True).count() == 10


def test_clusters_are_registered_switched_and_found(cast, act):
    cluster = cluster_create(actor=act("fleet_operator"), name="east")
    assert (cluster.credential, cluster.enabled, cluster.reachable) == ("east", True, None)
    for _ in range(2):
        cluster_enable(actor=act("fleet_operator"), public_id=cluster.public_id, enabled=False, reason="upgrade")
    assert list(cluster_list(enabled_only=True)) == []
    assert cluster_get(ref="east") == cluster_get(ref=cluster.public_id) == cluster
    assert list(AuditEvent.objects.order_by("pk").values_list("action", flat=True)) == ["cluster.create", "cluster.disable"]
    with pytest.raises(Conflict):
        cluster_create(actor=act("fleet_operator"), name="east")
    with pytest.raises(NotFound):
        cluster_get(ref="west")
    with pytest.raises(NotFound):
        profile_get(ref="west")


@pytest.mark.parametrize(
    ("name", "credential", "field"),
    [
        ("East", "", "name"),
        ("", "", "name"),
        ("1st", "", "name"),
        ("x" * 41, "", "name"),
        ("east", "../etc/passwd", "credential"),
        ("east", "a..b", "credential"),
        ("east", "/etc/kube", "credential"),
    ],
)
def test_bad_clusters_name_their_field(cast, act, name, credential, field):
    with pytest.raises(InvalidInput) as caught:
        cluster_create(actor=act("fleet_operator"), name=name, credential=credential)
    assert field in caught.value.fields
