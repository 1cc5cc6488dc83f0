from __future__ import annotations

from django.db import models

from portal.approvals.domain.states import RequestState
from portal.kernel.clock import now
from portal.kernel.ids import new_id
from portal.tenancy.models import Project, TenantManager, User


def request_id() -> str:
    return new_id("req")


class Request(models.Model):
    """Something that people decide. ``payload`` is the ask, in the shape its kind validates.

    ``made_kind``/``made_id`` name what fulfilment made (a grant, a deployment) as text, since that lives above.
    ``version`` goes up at every change; a form or an API client that saw an older one is told so.
    """

    public_id = models.CharField(max_length=40, unique=True, default=request_id, editable=False)
    kind = models.CharField(max_length=40)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="requests")
    requester = models.ForeignKey(User, on_delete=models.PROTECT, related_name="requests")
    title = models.CharField(max_length=200)
    payload = models.JSONField(default=dict)
    justification = models.TextField(blank=True)
    state = models.CharField(
        max_length=10, default=RequestState.DRAFT.value, choices=[(state.value, state.value) for state in RequestState]
    )
    stage = models.PositiveSmallIntegerField(default=1)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    submitted_at = models.DateTimeField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    fulfilled_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    outcome = models.TextField(blank=True)
    made_kind = models.CharField(max_length=40, blank=True)
    made_id = models.CharField(max_length=40, blank=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["project", "state", "-created_at"], name="request_by_project_state"),
            models.Index(fields=["state", "expires_at"], name="request_expiry"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=[state.value for state in RequestState]), name="request_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.public_id} {self.title}"
