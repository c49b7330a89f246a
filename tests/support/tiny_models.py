"""Tiny GGUF models of random weights, whose tokens are bytes: one for each way to remember what was read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from gguf import GGUFValueType, GGUFWriter, TokenType

Attending = Literal["llama", "qwen2", "qwen3", "qwen3moe", "granite", "gemma2", "gemma3", "smollm3", "phi3"]
# What they have read is one state: mamba's alone, that of the others beside a layer of attention.
KeepingState = Literal["mamba", "lfm2", "granitehybrid", "qwen35"]
Kind = Attending | KeepingState
WINDOW = 16  # tokens that the first layer of gemma2 looks back
CHAT = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: "
_WIDTH, _HEADS, _FORWARD = 64, 4, 128
_EXPERTS, _EXPERTS_USED = 4, 2
_INNER, _STATE, _CONVOLVED, _STEP_RANK = 128, 8, 4, 4
_GROUPS, _DELTA_STATE = 2, 16  # of granitehybrid and qwen35
_SPECIAL = ["<unk>", "<s>", "</s>"]
_THOUGHTS = ["<think>", "</think>"]
_NORMS = {"qwen3", "qwen3moe", "gemma3", "lfm2", "qwen35"}  # of queries and keys

Shapes = dict[str, tuple[int, ...]]


def save_model(
    path: Path,
    kind: Kind,
    *,
    template: str = CHAT,
    spare: int = 0,
    thoughts: tuple[int, int] | None = None,
    space_prefix: bool = False,
    add_bos: bool | None = None,
    added: Mapping[str, np.ndarray] = MappingProxyType({}),
    file_type: int = 0,
) -> Path:
    """Write a model of two layers: gemma attends partly to a window, those that keep a state not in the first layer.

    `spare` tokens stand for no text and are what the model likes best; two of them may begin and end `thoughts`. Some
    numbers may be `added` to weights, by their names. The file may say of itself that it has another `file_type`.
    """
    writer = GGUFWriter(path, kind)
    writer.add_file_type(file_type)
    writer.add_context_length(4096)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(2)
    writer.add_feed_forward_length(0 if kind == "mamba" else _FORWARD)
    writer.add_head_count(0 if kind == "mamba" else _HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    if kind in {"gemma2", "gemma3"}:
        writer.add_sliding_window(WINDOW)
    elif kind == "phi3":
        writer.add_rope_dimension_count(_WIDTH // _HEADS)
        writer.add_rope_scaling_orig_ctx_len(4096)
    elif kind.startswith("granite"):
        writer.add_logit_scale(2.0)
        writer.add_residual_scale(0.9)
        writer.add_embedding_scale(1.5)
        writer.add_attention_scale(0.2)
    elif kind == "qwen3moe":
        writer.add_expert_count(_EXPERTS)
        writer.add_expert_used_count(_EXPERTS_USED)
        writer.add_expert_feed_forward_length(_FORWARD)
    elif kind == "lfm2":
        writer.add_head_count_kv([0, _HEADS])
        writer.add_shortconv_l_cache(_CONVOLVED)
    if kind == "granitehybrid":
        writer.add_head_count_kv([0, _HEADS])
    elif kind == "qwen35":
        writer.add_rope_dimension_count(_WIDTH // _HEADS)
        writer.add_rope_dimension_sections([3, 3, 2, 0])
        writer.add_uint32("qwen35.full_attention_interval", 2)
    if kind in {"mamba", "granitehybrid", "qwen35"}:
        writer.add_ssm_inner_size(_STEP_RANK * _DELTA_STATE if kind == "qwen35" else _INNER)
        writer.add_ssm_state_size(_DELTA_STATE if kind == "qwen35" else _STATE)
        writer.add_ssm_conv_kernel(_CONVOLVED)
        writer.add_ssm_time_step_rank(_STEP_RANK)
    if kind in {"granitehybrid", "qwen35"}:
        writer.add_ssm_group_count(_GROUPS)
    tokens = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    kinds = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, *[TokenType.BYTE] * 256, TokenType.NORMAL]
    tokens += [f"<spare{number}>" for number in range(spare)]
    kinds += [TokenType.USER_DEFINED] * spare
    for token, mark in zip(thoughts or (), _THOUGHTS, strict=False):
        tokens[token] = mark
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(space_prefix)
    if add_bos is not None:
        writer.add_add_bos_token(add_bos)
    writer.add_chat_template(template)
    for name, weights in _weights(kind, len(tokens)).items():
        weights[len(tokens) - spare :] *= 4 if name == "token_embd.weight" and spare else 1
        writer.add_tensor(name, (weights + added.get(name, 0)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def save_adapter(path: Path, invocation: Sequence[int] = ()) -> tuple[Path, dict[str, np.ndarray]]:
    """Write an adapter of rank 4 for llama, activated if it has an invocation; return also what it adds to weights."""
    random, rank, alpha = np.random.default_rng(5), 4, 8.0
    writer = GGUFWriter(path, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    if invocation:
        tokens = list(invocation)
        writer.add_key_value(
            "adapter.alora.invocation_tokens", tokens, GGUFValueType.ARRAY, sub_type=GGUFValueType.UINT32
        )
    added = {}
    for layer in range(2):
        for part in ("q", "v"):
            name = f"blk.{layer}.attn_{part}.weight"
            a, b = (
                random.normal(scale=0.2, size=shape).astype(np.float32) for shape in ((rank, _WIDTH), (_WIDTH, rank))
            )
            writer.add_tensor(f"{name}.lora_a", a)
            writer.add_tensor(f"{name}.lora_b", b)
            added[name] = alpha / rank * b @ a
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, added


def _weights(kind: Kind, vocabulary: int) -> dict[str, np.ndarray]:
    """Draw the weights: large enough that a text depends on all that stands before it."""
    random = np.random.default_rng(0)
    shapes: Shapes = {"token_embd.weight": (vocabulary, _WIDTH)}
    shapes |= {"token_embd_norm.weight" if kind == "lfm2" else "output_norm.weight": (_WIDTH,)}
    for layer in range(2):
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in _layer(kind, layer).items()}
    drawn = {name: random.normal(scale=2 / np.sqrt(shape[-1]), size=shape) for name, shape in shapes.items()}
    # What a layer of gemma2 adds is normalised: with less weight, every token would be followed by itself.
    drawn |= {name: np.full(shape, 8 if "post" in name else 1) for name, shape in shapes.items() if "norm" in name}
    return drawn | {name: -np.abs(weights) for name, weights in drawn.items() if name.endswith("ssm_a")}


def _state_of_granite() -> Shapes:
    """Return the shapes of a layer of Mamba 2, besides those that follow every layer."""
    convolved = _INNER + 2 * _GROUPS * _STATE
    return {
        "ssm_in.weight": (_INNER + convolved + _STEP_RANK, _WIDTH),
        "ssm_conv1d.weight": (convolved, _CONVOLVED),
        "ssm_conv1d.bias": (convolved,),
        "ssm_dt.bias": (_STEP_RANK,),
        "ssm_a": (_STEP_RANK, 1),
        "ssm_d": (_STEP_RANK, 1),
        "ssm_norm.weight": (_GROUPS, _INNER // _GROUPS),
        "ssm_out.weight": (_WIDTH, _INNER),
    }


def _state_of_qwen() -> Shapes:
    """Return the shapes of a gated delta net, besides those that follow every layer."""
    keys, values = _GROUPS * _DELTA_STATE, _STEP_RANK * _DELTA_STATE
    return {
        "attn_qkv.weight": (2 * keys + values, _WIDTH),
        "attn_gate.weight": (values, _WIDTH),
        "ssm_conv1d.weight": (2 * keys + values, _CONVOLVED),
        "ssm_dt.bias": (_STEP_RANK,),
        "ssm_a": (_STEP_RANK,),
        "ssm_beta.weight": (_STEP_RANK, _WIDTH),
        "ssm_alpha.weight": (_STEP_RANK, _WIDTH),
        "ssm_norm.weight": (_DELTA_STATE,),
        "ssm_out.weight": (_WIDTH, values),
    }


def _layer(kind: Kind, layer: int) -> Shapes:
    """Return the shapes of one layer's weights."""
    square = (_WIDTH, _WIDTH)
    if kind == "mamba":
        return {
            "attn_norm.weight": (_WIDTH,),
            "ssm_in.weight": (2 * _INNER, _WIDTH),
            "ssm_conv1d.weight": (_INNER, _CONVOLVED),
            "ssm_conv1d.bias": (_INNER,),
            "ssm_x.weight": (_STEP_RANK + 2 * _STATE, _INNER),
            "ssm_dt.weight": (_INNER, _STEP_RANK),
            "ssm_dt.bias": (_INNER,),
            "ssm_a": (_INNER, _STATE),
            "ssm_d": (_INNER,),
            "ssm_out.weight": (_WIDTH, _INNER),
        }
    after = "post_attention_norm" if kind == "qwen35" else "ffn_norm"
    shapes: Shapes = {"attn_norm.weight": (_WIDTH,), f"{after}.weight": (_WIDTH,)}
    if kind == "qwen3moe":
        shapes |= {"ffn_gate_inp.weight": (_EXPERTS, _WIDTH), "ffn_down_exps.weight": (_EXPERTS, _WIDTH, _FORWARD)}
        shapes |= {f"ffn_{name}_exps.weight": (_EXPERTS, _FORWARD, _WIDTH) for name in ("gate", "up")}
    elif kind == "phi3":
        shapes |= {"ffn_up.weight": (2 * _FORWARD, _WIDTH), "ffn_down.weight": (_WIDTH, _FORWARD)}
        return shapes | {"attn_qkv.weight": (3 * _WIDTH, _WIDTH), "attn_output.weight": square}
    else:
        shapes |= {f"ffn_{name}.weight": (_FORWARD, _WIDTH) for name in ("gate", "up")}
        shapes |= {"ffn_down.weight": (_WIDTH, _FORWARD)}
    if kind == "lfm2" and layer == 0:
        convolution: Shapes = {"in_proj.weight": (3 * _WIDTH, _WIDTH), "out_proj.weight": square}
        convolution |= {"conv.weight": (_WIDTH, _CONVOLVED)}
        return shapes | {f"shortconv.{name}": shape for name, shape in convolution.items()}
    if layer == 0 and kind in {"granitehybrid", "qwen35"}:
        return shapes | (_state_of_granite() if kind == "granitehybrid" else _state_of_qwen())
    shapes |= {f"attn_{name}.weight": square for name in ("q", "k", "v", "output")}
    if kind == "qwen35":  # with gates for what the heads find
        shapes |= {"attn_q.weight": (2 * _WIDTH, _WIDTH)}
    if kind == "qwen2":
        shapes |= {f"attn_{name}.bias": (_WIDTH,) for name in ("q", "k", "v")}
    if kind in _NORMS:
        shapes |= {f"attn_{name}_norm.weight": (_WIDTH // _HEADS,) for name in ("q", "k")}
    if kind in {"gemma2", "gemma3"}:
        shapes |= {f"post_{name}.weight": (_WIDTH,) for name in ("attention_norm", "ffw_norm")}
    return shapes
