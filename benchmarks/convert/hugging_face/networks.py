"""Small networks of Hugging Face's transformers, from configurations, with random weights."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hugging_face
from torch import nn

ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
TEXT = {**ENCODER, "vocab_size": 50}
VISION = {**ENCODER, "image_size": 32, "patch_size": 8}
DECODED = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}


class Text(nn.Module):
    """Logits or last hidden states of token numbers."""

    def __init__(self, model: nn.Module, **settings: Any) -> None:
        super().__init__()
        self.model, self.settings = model, settings

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return first_of(self.model(input_ids=ids, return_dict=True, **self.settings))


class Pixels(nn.Module):
    """Logits or last hidden states of images."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return first_of(self.model(pixel_values=images, return_dict=True))


class Both(nn.Module):
    """An encoder and a decoder over the same tokens."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return first_of(self.model(input_ids=ids, decoder_input_ids=ids, use_cache=False))


class Speech(nn.Module):
    """An encoder of spectra and a decoder of tokens."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, spectra: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        given = {"input_features": spectra, "decoder_input_ids": ids, "use_cache": False}
        return first_of(self.model(**given))


def first_of(output: Any) -> torch.Tensor:
    found: torch.Tensor = output.logits if hasattr(output, "logits") else output.last_hidden_state
    return found


def of(name: str, settings: dict[str, Any], model: str = "") -> nn.Module:
    """A model of a configuration, both by their names in the library."""
    made = getattr(hugging_face, f"{name}Config")(**settings)
    found: nn.Module = getattr(hugging_face, model or f"{name}Model")(made)
    return found


def text(name: str, settings: dict[str, Any], model: str = "") -> nn.Module:
    is_causal = "Causal" in model or "LMHead" in model
    return Text(of(name, settings, model), **({"use_cache": False} if is_causal else {}))


def bert() -> nn.Module:
    return text("Bert", TEXT)


def bert_eager() -> nn.Module:
    return text("Bert", {**TEXT, "attn_implementation": "eager"})


def roberta() -> nn.Module:
    return text("Roberta", TEXT, "RobertaForSequenceClassification")


def distilbert() -> nn.Module:
    return text(
        "DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 50}
    )


def albert() -> nn.Module:
    return text("Albert", {**TEXT, "embedding_size": 16})


def electra() -> nn.Module:
    return text("Electra", {**TEXT, "embedding_size": 16})


def deberta() -> nn.Module:
    return text(
        "DebertaV2",
        {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
    )


def clip_text() -> nn.Module:
    return text("CLIPText", TEXT)


def gpt2() -> nn.Module:
    return text(
        "GPT2",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 50, "n_positions": 32},
        "GPT2LMHeadModel",
    )


def gptneox() -> nn.Module:
    return text("GPTNeoX", TEXT, "GPTNeoXForCausalLM")


def llama() -> nn.Module:
    return text("Llama", {**TEXT, "num_key_value_heads": 2}, "LlamaForCausalLM")


def mistral() -> nn.Module:
    return text(
        "Mistral", {**TEXT, "num_key_value_heads": 2, "sliding_window": 4}, "MistralForCausalLM"
    )


def qwen2() -> nn.Module:
    return text("Qwen2", {**TEXT, "num_key_value_heads": 2}, "Qwen2ForCausalLM")


def gemma() -> nn.Module:
    return text("Gemma", {**TEXT, "num_key_value_heads": 2, "head_dim": 8}, "GemmaForCausalLM")


def mixtral() -> nn.Module:
    return text(
        "Mixtral", {**TEXT, "num_key_value_heads": 2, "num_local_experts": 3}, "MixtralForCausalLM"
    )


def opt() -> nn.Module:
    return text(
        "OPT",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 64,
            "vocab_size": 50,
            "word_embed_proj_dim": 32,
            "max_position_embeddings": 32,
        },
        "OPTForCausalLM",
    )


def bloom() -> nn.Module:
    return text(
        "Bloom",
        {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 50},
        "BloomForCausalLM",
    )


def mamba() -> nn.Module:
    return text(
        "Mamba",
        {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "vocab_size": 50},
        "MambaForCausalLM",
    )


def t5() -> nn.Module:
    return Both(
        of(
            "T5",
            {
                "d_model": 32,
                "d_kv": 8,
                "d_ff": 64,
                "num_layers": 2,
                "num_heads": 4,
                "vocab_size": 50,
            },
        )
    )


def bart() -> nn.Module:
    return Both(of("Bart", {**DECODED, "vocab_size": 50, "max_position_embeddings": 32}))


def vit() -> nn.Module:
    return Pixels(of("ViT", VISION, "ViTForImageClassification"))


def deit() -> nn.Module:
    return Pixels(of("DeiT", VISION))


def beit() -> nn.Module:
    return Pixels(of("Beit", VISION))


def dinov2() -> nn.Module:
    return Pixels(of("Dinov2", VISION))


def swin() -> nn.Module:
    return Pixels(
        of(
            "Swin",
            {
                "image_size": 32,
                "patch_size": 2,
                "embed_dim": 16,
                "depths": [2, 2],
                "num_heads": [2, 4],
                "window_size": 4,
            },
        )
    )


def convnext() -> nn.Module:
    return Pixels(of("ConvNext", {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}))


def segformer() -> nn.Module:
    return Pixels(
        of(
            "Segformer",
            {
                "hidden_sizes": [8, 16, 24, 32],
                "depths": [1, 1, 1, 1],
                "num_attention_heads": [1, 2, 2, 4],
                "decoder_hidden_size": 16,
            },
            "SegformerForSemanticSegmentation",
        )
    )


def mobilevit() -> nn.Module:
    return Pixels(
        of(
            "MobileViT",
            {
                "hidden_sizes": [16, 24, 32],
                "neck_hidden_sizes": [8, 8, 16, 24, 32, 40, 48],
                "image_size": 64,
            },
        )
    )


def resnet() -> nn.Module:
    return Pixels(of("ResNet", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}))


def whisper() -> nn.Module:
    return Speech(
        of(
            "Whisper",
            {
                **DECODED,
                "vocab_size": 50,
                "num_mel_bins": 8,
                "max_source_positions": 10,
                "max_target_positions": 16,
                "pad_token_id": 0,
                "bos_token_id": 1,
                "eos_token_id": 2,
                "decoder_start_token_id": 1,
            },
        )
    )
