"""Tiny randomly initialised checkpoints of the architectures of bge-*-en-v1.5 and bge-reranker."""

import string
from pathlib import Path

WORDS = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase), ".", ":", ",", "the", "tide"]


def save_bert(folder: Path) -> Path:
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
        max_position_embeddings=64,
        initializer_range=0.5,  # large enough that texts differ
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab=vocabulary, do_lower_case=True).save_pretrained(folder)
    return folder


def save_xlm_roberta(folder: Path) -> Path:
    """Save an XLM-RoBERTa sequence classifier with one label and a Unigram tokenizer, as the BGE rerankers have."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaForSequenceClassification

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
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=130,
        initializer_range=0.3,
        type_vocab_size=1,
        num_labels=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    return folder
