"""Tiny randomly initialised checkpoints of the architectures of bge-*-en-v1.5 and bge-reranker."""

import string
import warnings
from pathlib import Path
from typing import Any, Literal

WORDS = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase), ".", ":", ",", "the", "tide"]


def save_bert(folder: Path, positions: int = 64) -> Path:
    """Save a BERT encoder with a WordPiece tokenizer."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    vocabulary = {word: index for index, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions,
        initializer_range=0.5,  # large enough that texts differ
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab=vocabulary, do_lower_case=True).save_pretrained(folder)
    return folder


def save_leaf(folder: Path) -> Path:
    """Save an embedder in the shape of mdbr-leaf-ir: mean pooling, then a linear layer to a larger width."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    parts = folder.with_name(f"{folder.name}-parts")
    parts.mkdir()
    transformer = modules.Transformer(str(save_bert(parts)))
    torch.manual_seed(1)
    widening = modules.Dense(in_features=32, out_features=64, activation_function=torch.nn.Identity())
    several = [transformer, modules.Pooling(32, pooling_mode="mean"), widening, modules.Normalize()]
    prompts = {"query": "the: ", "document": ""}
    SentenceTransformer(modules=several, prompts=prompts, device="cpu").save_pretrained(str(folder))
    return folder


def _save_letters(folder: Path) -> int:
    """Save a Unigram tokenizer of letters; return the size of its vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    letters = [f"\u2581{letter}" for letter in string.ascii_lowercase] + list(string.ascii_lowercase + " .,?\u2581")
    vocabulary = [*((special, 0.0) for special in specials), *((letter, -5.0) for letter in letters)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)
    return len(vocabulary)


def save_xlm_roberta(folder: Path, positions: int = 128) -> Path:
    """Save an XLM-RoBERTa sequence classifier with one label and a Unigram tokenizer, as the BGE rerankers have."""
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

    vocabulary = _save_letters(folder)
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions + 2,  # the first two are not used
        initializer_range=0.3,
        type_vocab_size=1,
        num_labels=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    return folder


def save_modernbert(folder: Path, kind: Literal["embedder", "classifier"] = "embedder", **fields: Any) -> Path:
    """Save a ModernBERT whose first and last layers attend to all tokens, those between to eight nearby."""
    import torch
    from transformers import ModernBertConfig, ModernBertForSequenceClassification, ModernBertModel

    vocabulary = _save_letters(folder)
    torch.manual_seed(0)
    config = ModernBertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=128,
        local_attention=8,
        initializer_range=0.3,
        num_labels=1,
        pad_token_id=1,
        bos_token_id=0,
        cls_token_id=0,
        eos_token_id=2,
        sep_token_id=2,
        **fields,
    )
    model = (ModernBertModel if kind == "embedder" else ModernBertForSequenceClassification)(config)
    for name, weights in model.named_parameters():  # norms that change nothing would prove nothing
        if "norm" in name:
            torch.nn.init.uniform_(weights, 0.5, 1.5)
    model.save_pretrained(folder)
    return folder


def save_ettin(folder: Path) -> Path:
    """Save a cross-encoder whose head follows the transformer in modules of its own, as the Ettin rerankers have."""
    import torch
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.cross_encoder import CrossEncoder
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling

    (folder / "backbone").mkdir(parents=True)
    save_modernbert(folder / "backbone")
    torch.manual_seed(1)
    norm = LayerNorm(32)
    torch.nn.init.uniform_(norm.norm.weight, 0.5, 1.5)
    torch.nn.init.uniform_(norm.norm.bias, -0.5, 0.5)
    modules = [
        Transformer(str(folder / "backbone"), max_seq_length=128),
        Pooling(32, pooling_mode="cls"),
        Dense(32, 32, bias=False, activation_function=torch.nn.GELU()),
        norm,
        Dense(32, 1, activation_function=torch.nn.Identity(), module_output_name="scores"),
    ]
    CrossEncoder(modules=modules, device="cpu").save_pretrained(str(folder / "ettin"))
    return folder / "ettin"


def add_makers_onnx(folder: Path) -> Path:
    """Add the ONNX file that makers publish beside the weights: of the transformer, without pooling."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

    config = AutoConfig.from_pretrained(folder)
    scores = config.architectures[0].endswith("ForSequenceClassification")
    model = (AutoModelForSequenceClassification if scores else AutoModel).from_pretrained(
        folder, attn_implementation="eager", return_dict=False
    )
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if config.model_type == "bert" else [])]

    class Named(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> Any:
            return self.model(**dict(zip(names, inputs, strict=True)))[0]

    (folder / "onnx").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no further package is an older one
        torch.onnx.export(
            Named().eval(),
            tuple(torch.ones((2, 12), dtype=torch.long) for _ in names),
            folder / "onnx" / "model.onnx",
            input_names=names,
            output_names=["logits" if scores else "last_hidden_state"],
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in names},
            dynamo=False,
        )
    return folder


def with_pooling(folder: Path, pooling: str) -> Path:
    """Save the transformer in a folder as an embedder of sentence-transformers, beside it; return its folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    transformer = modules.Transformer(str(folder))
    several = [transformer, modules.Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling)]
    own = folder.with_name(f"{folder.name}-{pooling}")
    SentenceTransformer(modules=several, device="cpu").save_pretrained(str(own))
    return own
