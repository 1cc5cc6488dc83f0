"""The gateway's control plane: xDS for Envoy and the authz service."""

from portal.settings.base import *  # noqa: F403
