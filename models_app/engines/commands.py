"""The command lines of the servers that plain pods run: llama.cpp's and vLLM's."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.domain.sources import ClaimSource, HubSource, parsed_source
from models_app.engines.base import EngineSpec, Problem

MODELS_FOLDER = "/models"
CACHE_FOLDER = "/cache"


@dataclass(frozen=True, slots=True)
class Server:
    """``command`` () leaves the image's entrypoint. ``port`` is where it listens; ``reserved`` are flags that are ours."""

    backend: str
    command: tuple[str, ...]
    port: int
    reserved: frozenset[str]


LLAMA_CPP = Server(
    backend="llamacpp",
    command=(),
    port=8080,
    reserved=frozenset(
        {
            "--host", "--port", "--alias", "-a", "--model", "-m", "--hf-repo", "-hf", "-hfr", "--hf-file", "-hff",
            "--ctx-size", "-c", "--api-key", "--api-key-file", "--ssl-key-file", "--ssl-cert-file", "--api-prefix",
            "--n-gpu-layers", "-ngl",
        }
    ),
)  # fmt: skip
VLLM = Server(
    backend="vllm",
    command=("vllm", "serve"),
    port=8000,
    reserved=frozenset(
        {
            "--host", "--port", "--uds", "--model", "--served-model-name", "--revision", "--tensor-parallel-size",
            "-tp", "--max-model-len", "--api-key", "--ssl-keyfile", "--ssl-certfile", "--root-path", "--download-dir",
            "--config",
        }
    ),
)  # fmt: skip
SERVERS = {server.backend: server for server in (LLAMA_CPP, VLLM)}


def server_arguments(spec: EngineSpec) -> list[str]:
    """The arguments of the server of ``spec.backend``, in a fixed order, the author's own ones last.

    ``$(`` is written ``$$(``: Kubernetes would take it for a variable of the container.
    """
    build = _llama_cpp if spec.backend == LLAMA_CPP.backend else _vllm
    return [argument.replace("$(", "$$(") for argument in [*build(spec), *spec.arguments]]


def argument_problems(spec: EngineSpec) -> list[Problem]:
    """Flags that Slipway sets itself may not be set again; a GGUF on the hub needs its file."""
    server = SERVERS.get(spec.backend)
    if server is None:
        return [Problem("backend", f"“{spec.backend}” is no known server; there are: {', '.join(SERVERS)}.")]
    problems = []
    for argument in spec.arguments:
        flag = argument.partition("=")[0].partition(" ")[0].replace("_", "-")
        if flag in server.reserved:
            problems.append(Problem("arguments", f"{flag} is set by Slipway: leave it out."))
    source = parsed_source(spec.source)
    if spec.backend == LLAMA_CPP.backend:
        if spec.model_format != "gguf":
            problems.append(Problem("model_format", "llama.cpp serves gguf."))
        if isinstance(source, HubSource) and not spec.source_file:
            problems.append(Problem("source_file", "Name the GGUF file in the repository, such as model-Q4_K_M.gguf."))
    return problems


def _llama_cpp(spec: EngineSpec) -> list[str]:
    source = parsed_source(spec.source)
    arguments = ["--host=0.0.0.0", f"--port={LLAMA_CPP.port}", f"--alias={spec.served_name}", "--metrics", "--jinja"]
    if isinstance(source, ClaimSource):
        file = f"/{spec.source_file}" if spec.source_file else ""
        arguments.append(f"--model={MODELS_FOLDER}/{source.path}{file}")
    else:
        revision = f":{spec.source_revision}" if spec.source_revision else ""
        arguments += [f"--hf-repo={source.repository}{revision}", f"--hf-file={spec.source_file}"]
    if spec.context_length is not None:
        arguments.append(f"--ctx-size={spec.context_length}")
    if spec.devices:
        arguments.append("--n-gpu-layers=999")
    return arguments


def _vllm(spec: EngineSpec) -> list[str]:
    source = parsed_source(spec.source)
    model = f"{MODELS_FOLDER}/{source.path}" if isinstance(source, ClaimSource) else source.repository
    arguments = [model, "--host=0.0.0.0", f"--port={VLLM.port}", f"--served-model-name={spec.served_name}"]
    if isinstance(source, HubSource) and spec.source_revision:
        arguments.append(f"--revision={spec.source_revision}")
    if spec.devices > 1:
        arguments.append(f"--tensor-parallel-size={spec.devices}")
    if spec.context_length is not None:
        arguments.append(f"--max-model-len={spec.context_length}")
    return arguments
