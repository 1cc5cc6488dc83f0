"""The web process: pages and REST."""

from csp.constants import NONCE, NONE, SELF

from portal.settings.base import *  # noqa: F403
from portal.settings.base import BASE_DIR, DATABASES, INSTALLED_APPS, environment

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "allauth",
    "allauth.account",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
    "django_htmx",
    "django_tables2",
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]

# Under ASGI each request may run in another thread, where a kept connection would never be found again: a pool instead.
DATABASES["default"] |= {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
DATABASES["default"]["OPTIONS"] |= {"pool": {"min_size": 2, "max_size": 16, "timeout": 10}}

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.site.middleware.RequestIdMiddleware",
    "portal.site.access_log.AccessLogMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.site.middleware.SignInMiddleware",
    "portal.site.middleware.SlipwayErrorMiddleware",
]

ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "portal.site.context.chrome",
            ],
            "builtins": [
                "django.templatetags.static",
                "django.contrib.humanize.templatetags.humanize",
                "portal.site.templatetags.slipway",
            ],
        },
    }
]
STATIC_ROOT = environment.text("SLIPWAY_STATIC_ROOT", default=str(BASE_DIR / ".static"))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
STATICFILES_DIRS = [BASE_DIR / "node_modules" / "slipway-static", BASE_DIR / "portal" / "site" / "assets"]

LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/login/"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_ADAPTER = "portal.tenancy.web.adapter.AccountAdapter"
ACCOUNT_RATE_LIMITS = {"login_failed": "20/5m/ip,5/5m/key"}

_secure = environment.flag("SLIPWAY_HTTPS", default=True)
SESSION_COOKIE_SECURE = _secure
CSRF_COOKIE_SECURE = _secure
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
SECURE_HSTS_SECONDS = 31_536_000 if _secure else 0
SECURE_SSL_REDIRECT = False
SECURE_REFERRER_POLICY = "same-origin"
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if environment.flag("SLIPWAY_BEHIND_PROXY", default=False) else None
)
CSRF_TRUSTED_ORIGINS = environment.items("SLIPWAY_TRUSTED_ORIGINS")
CSRF_FAILURE_VIEW = "portal.site.web.errors.csrf_failure"
X_FRAME_OPTIONS = "DENY"
environment.check()

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.tenancy.api.authentication.TokenAuthentication",
        "portal.tenancy.api.authentication.BrowserSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "portal.tenancy.api.schema.NamedAutoSchema",
    "EXCEPTION_HANDLER": "portal.tenancy.api.errors.exception_handler",
    "DEFAULT_PAGINATION_CLASS": None,
    "DEFAULT_METADATA_CLASS": None,
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Slipway",
    "DESCRIPTION": (
        "Ask for capacity, decide, deploy models, and read what they used.\n\n"
        "Times are ISO 8601 with an offset. Lists come in pages: follow `next`. "
        "Writes that could overwrite a change take the `ETag` you read in `If-Match`; a POST may carry an `Idempotency-Key`."
    ),
    "VERSION": "v1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "portal.tenancy.api.schema.with_errors",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ProjectRoleEnum": ["viewer", "member", "lead"],
        "OrganizationRoleEnum": ["org_admin"],
        "VerdictEnum": ["approve", "deny"],
        "CheckVerdictEnum": ["ok", "warn", "refuse", "unknown"],
    },
    "ENABLE_DJANGO_DEPLOY_CHECK": False,
}
