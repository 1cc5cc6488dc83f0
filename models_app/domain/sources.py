"""Where a model's files come from (contract §1): the source forms that an engine here can read, and their parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HF_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_PATH = re.compile(r"[A-Za-z0-9._+=@-]+(/[A-Za-z0-9._+=@-]+)*")
_NOT_YET = ("s3", "oci", "mlflow")
SOURCE_MAX = 300


@dataclass(frozen=True, slots=True)
class HubSource:
    """``hf://org/name``."""

    repository: str


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """``pvc://claim/path``: a file or folder on a persistent volume claim of the project's namespace."""

    claim: str
    path: str


Source = HubSource | ClaimSource


def parsed_source(text: str) -> Source:
    """The parts of a source; ValueError with a sentence for people when it is none that can be served."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise ValueError("A source starts with its scheme: hf://org/name, or pvc://claim/path.")
    if len(text) > SOURCE_MAX:
        raise ValueError(f"A source has at most {SOURCE_MAX} characters.")
    if scheme == "hf":
        if not _HF_NAME.fullmatch(rest) or ".." in rest:
            raise ValueError("A hub source is hf://org/name, such as hf://Qwen/Qwen3-8B-GGUF.")
        return HubSource(repository=rest)
    if scheme == "pvc":
        claim, _, path = rest.partition("/")
        if not _CLAIM.fullmatch(claim) or not _PATH.fullmatch(path) or ".." in path.split("/"):
            raise ValueError("A volume source is pvc://claim/path, such as pvc://models/qwen3-8b.")
        return ClaimSource(claim=claim, path=path)
    if scheme in _NOT_YET:
        raise ValueError(
            f"{scheme}:// cannot be served yet: put the files on a volume and use pvc://claim/path, or use hf://."
        )
    raise ValueError(f"“{scheme}://” is no known source: use hf://org/name or pvc://claim/path.")


def source_problem(text: str) -> str:
    """Why ``text`` is no source that can be served; "" when it is."""
    try:
        parsed_source(text)
    except ValueError as error:
        return str(error)
    return ""


def file_problem(path: str) -> str:
    """Why ``path`` cannot be a file inside a source; "" when it can (or is empty)."""
    if path and (len(path) > SOURCE_MAX or not _PATH.fullmatch(path) or ".." in path.split("/")):
        return "A path inside the source: letters, digits and . _ + = @ - between slashes, no “..”."
    return ""


def model_id_of(source: str) -> str:
    """The raw model id for the annotation ``slipway/model-id``: ``acme/Llama-3.2-3B`` of ``hf://acme/Llama-3.2-3B``."""
    return source.partition("://")[2] or source
