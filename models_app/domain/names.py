"""Names (contract D1, case C23): what a person may type, and the cluster name derived from it once and for ever."""

from __future__ import annotations

import re
from enum import StrEnum

from portal.kernel.names import DNS_LABEL_MAX, shortened, slugify

MODEL_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
MODEL_NAME_MAX = 63
LABEL_VALUE_MAX = 63
_SUFFIX = 6


class Target(StrEnum):
    """The kinds of object a name may end up on; each has its own tightest derived limit."""

    DEPLOYMENT = "Deployment"
    FLEXINFER_MODEL = "Model"
    INFERENCE_SERVICE = "InferenceService"
    RAY_CLUSTER = "RayCluster"
    RAY_JOB = "RayJob"
    RAY_SERVICE = "RayService"


_FIXED_LIMITS = {
    Target.DEPLOYMENT: DNS_LABEL_MAX,
    Target.FLEXINFER_MODEL: DNS_LABEL_MAX,
    Target.RAY_CLUSTER: 53,
    Target.RAY_JOB: 47,
    Target.RAY_SERVICE: 47,
}


def limit_of(target: Target, *, namespace: str = "") -> int:
    """How many characters a name on ``target`` in ``namespace`` may have; may be below 1 when the namespace is too long.

    KServe's tightest derived name is the host label ``<name>-predictor-<namespace>``, 63 in all.
    """
    if target is Target.INFERENCE_SERVICE:
        return DNS_LABEL_MAX - len("-predictor-") - len(namespace)
    return _FIXED_LIMITS[target]


def object_name_problem(name: str, target: Target, *, namespace: str = "") -> str:
    """Why ``name``, typed by a person, cannot name ``target``; "" when it can. Nothing is cut silently (C23)."""
    if not re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name):
        return (
            f"“{name}” is no name for a {target.value}: lower-case letters, digits and dashes, "
            "starting with a letter and ending with a letter or a digit."
        )
    limit = limit_of(target, namespace=namespace)
    if len(name) > limit:
        where = f" in namespace {namespace}" if target is Target.INFERENCE_SERVICE else ""
        return f"“{name}” has {len(name)} characters; a {target.value}{where} takes at most {limit}."
    return ""


def model_name_problem(name: str) -> str:
    """Why ``name`` cannot be a served model's name (what API callers send as ``model``); "" when it can."""
    if not name:
        return "Give the model a name; API callers send it as “model”."
    if len(name) > MODEL_NAME_MAX:
        return f"The name has {len(name)} characters; at most {MODEL_NAME_MAX} are allowed."
    if not MODEL_NAME.fullmatch(name):
        suggestion = label_value(name.lower())
        hint = f" For example: {suggestion}." if suggestion else ""
        return (
            "A name has lower-case letters, digits, dots, dashes and underscores, "
            f"and starts and ends with a letter or a digit.{hint}"
        )
    return ""


def derived_object_name(model_name: str, public_id: str, *, limit: int) -> str:
    """The cluster name of a deployment: the model name's slug and the tail of its id, within ``limit`` characters.

    The tail makes it unique and never reused: a recreated model name never adopts old objects (D1).
    """
    tail = public_id[-_SUFFIX:]
    slug = slugify(model_name) or "model"
    return f"{shortened(slug, limit - _SUFFIX - 1)}-{tail}"


def label_value(text: str) -> str:
    """``text`` as a label value, a slug of at most 63 characters: "acme/Llama-3.2-3B" -> "acme-llama-3-2-3b"."""
    return shortened(slugify(text), LABEL_VALUE_MAX)
