"""The demo's model: a tiny random Llama in GGUF, made on this machine, so that nothing has to be downloaded."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

_WIDTH, _INNER, _LAYERS, _HEADS, _CONTEXT = 64, 128, 2, 4, 8192
_WORDS = (
    "the a model token answers with care from local engine on this small card and streams words one by you while it is "
    "ready for each question asked here now then again slowly gladly without any claim of truth"
)
# A dimension that every embedding sets high and the output weighs by: it keeps raw bytes out of the text, and lets many
# answers end by themselves within some hundred words.
_BIAS, _NEVER, _END = 4.0, -20.0, 0.0


def ensure_model(path: Path) -> Path:
    """Write the model to ``path`` unless it is there; about 0.5 MB, the same bytes' worth on every machine (fixed seed)."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        _write(part)
        part.replace(path)
    return path


def _write(path: Path) -> None:
    random = np.random.default_rng(7)
    words = [f"\u2581{word}" for word in dict.fromkeys(_WORDS.split())]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *words]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * (1 + len(words))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("slipway-tiny")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }} {% endfor %}")

    def noise(name: str, rows: int, columns: int, scale: float) -> None:
        writer.add_tensor(name, (random.standard_normal((rows, columns)) * scale).astype(np.float32))

    embedding = (random.standard_normal((len(tokens), _WIDTH)) * 0.3).astype(np.float32)
    embedding[:, 0] = _BIAS
    output = (random.standard_normal((len(tokens), _WIDTH)) * 0.4).astype(np.float32)
    output[:, 0] = 0
    output[: len(tokens) - len(words), 0] = _NEVER
    output[2, 0] = _END
    ones = np.ones(_WIDTH, np.float32)
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", ones)
    for layer in range(_LAYERS):
        block = f"blk.{layer}"
        writer.add_tensor(f"{block}.attn_norm.weight", ones)
        writer.add_tensor(f"{block}.ffn_norm.weight", ones)
        for part in "qkv":
            noise(f"{block}.attn_{part}.weight", _WIDTH, _WIDTH, 0.1)
        noise(f"{block}.attn_output.weight", _WIDTH, _WIDTH, 0.02)
        noise(f"{block}.ffn_gate.weight", _INNER, _WIDTH, 0.1)
        noise(f"{block}.ffn_up.weight", _INNER, _WIDTH, 0.1)
        noise(f"{block}.ffn_down.weight", _WIDTH, _INNER, 0.02)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
