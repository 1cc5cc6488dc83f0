"""The gateway's control plane: xDS for Envoy and the authz service."""

from portal.settings.base import *  # noqa: F403
from portal.settings.base import DATABASES, environment

GATEWAY_ORIGINS = tuple(environment.items("SLIPWAY_GATEWAY_ORIGINS"))
GATEWAY_IDLE_SECONDS = environment.number("SLIPWAY_GATEWAY_IDLE_SECONDS", default=100)
GATEWAY_BODY_BYTES = environment.number("SLIPWAY_GATEWAY_BODY_BYTES", default=16 * 1024 * 1024)
environment.check()

# A database that hangs must not hang the follower longer than a revocation may take (contract G4).
DATABASES = {
    "default": {
        **DATABASES["default"],
        "OPTIONS": {
            "options": "-c lock_timeout=2000 -c statement_timeout=3000",
            "connect_timeout": 3,
            "tcp_user_timeout": 4000,
        },
    }
}
