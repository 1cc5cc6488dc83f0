from portal.approvals.models.decisions import Decision
from portal.approvals.models.requests import Request

__all__ = ["Decision", "Request"]
