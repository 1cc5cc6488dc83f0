from django.db import models

from portal.kernel.clock import now


class Heartbeat(models.Model):
    """The last sign of life of one long-lived process or loop, by name (``observer:<cluster>``, ``sweep:<kind>``)."""

    name = models.CharField(max_length=120, primary_key=True)
    at = models.DateTimeField(default=now)
    detail = models.JSONField(default=dict, blank=True)

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%Y-%m-%d %H:%M:%S}Z"
