"""What every process of Slipway shares; web, worker, gateway and test add what only they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from portal.settings.environment import Environment
from portal.settings.logging import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent.parent

environment = Environment()

SECRET_KEY = environment.secret("SLIPWAY_SECRET_KEY")
DEBUG = False
ALLOWED_HOSTS = environment.items("SLIPWAY_ALLOWED_HOSTS", default="localhost,127.0.0.1")

_database = conninfo_to_dict(
    environment.secret(
        "SLIPWAY_DATABASE_URL", what="for example postgresql://slipway@db/slipway, or SLIPWAY_DATABASE_URL_FILE"
    )
)
VALKEY_URL = environment.secret("SLIPWAY_VALKEY_URL", what="for example redis://valkey:6379/0, or SLIPWAY_VALKEY_URL_FILE")
CLUSTER_CREDENTIALS_DIR = Path(environment.text("SLIPWAY_CLUSTER_CREDENTIALS_DIR", default="/etc/slipway/clusters"))
GATEWAY_PUBLIC_URL = environment.text("SLIPWAY_GATEWAY_URL", default="")
ACCESS_LOG_PATH = environment.text("SLIPWAY_ACCESS_LOG", default="")
LOCAL_PROGRESS_FILE = environment.text("SLIPWAY_LOCAL_PROGRESS_FILE", default="")
SWEEP_SECONDS = environment.number("SLIPWAY_SWEEP_SECONDS", default=15)
RESYNC_SECONDS = environment.number("SLIPWAY_RESYNC_SECONDS", default=600)
METER_SECONDS = environment.number("SLIPWAY_METER_SECONDS", default=300)
LEASE_SECONDS = environment.number("SLIPWAY_LEASE_SECONDS", default=60)
LOGGING = logging_config(environment.text("SLIPWAY_LOG_LEVEL", default="INFO"))
environment.check()

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database.get("dbname", "slipway"),
        "USER": _database.get("user", ""),
        "PASSWORD": _database.get("password", ""),
        "HOST": _database.get("host", ""),
        "PORT": _database.get("port", ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,
        "OPTIONS": {"options": "-c lock_timeout=5000 -c idle_in_transaction_session_timeout=60000"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "portal.audit",
    "portal.work",
    "portal.tenancy",
    "portal.approvals",
    "fleet",
    "models_app",
    "routing",
    "portal.site",
]

AUTH_USER_MODEL = "tenancy.User"
# The address is unique by a constraint on Lower(email), which that check does not see.
SILENCED_SYSTEM_CHECKS = ["auth.E003", "auth.W004"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("email", "name")},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": VALKEY_URL}}

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False
STATIC_URL = "/static/"

CELERY_BROKER_URL = VALKEY_URL
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 120
CELERY_TASK_SOFT_TIME_LIMIT = 90
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 600,
    "socket_timeout": 10,
    "socket_connect_timeout": 2,
    # A click must not hang on a broker that is down: the row is its own outbox, and the sweep finds it.
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.2,
    "interval_max": 0.5,
}
CELERY_TIMEZONE = "UTC"
