"""Time rerankers on 150 passages of about 200 tokens, and count how many they score within the default time.

    python -m scripts.benchmarks reranking --json docs/measurements/rerank-speed.json

One is the shipped cross-encoder. The other has the size of bge-reranker-base and random weights, because speed does not
depend on the weights. Each figure is the median of three rounds after a warm-up. Run it on an idle machine.
"""

import argparse
import json
import random
import statistics
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from local_rag.llama.models_in_use import load_reader
from local_rag.machine import physical_cores
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import tokenizer_of
from local_rag.models.registry import resolve
from local_rag.settings import Settings

PASSAGES = 150
TOKENS = 200
ROUNDS = 3


def passages(model: InstalledModel) -> list[str]:
    """Return texts of 120 to 280 tokens, 200 on average."""
    chance = random.Random(0)  # noqa: S311  repeatable on purpose
    tokenizer = tokenizer_of(model)
    words = Path(__file__).read_text(encoding="utf-8").split()
    texts = []
    for number in range(PASSAGES):
        text = " ".join(chance.choices(words, k=300))
        ends = tokenizer.encode(text, add_special_tokens=False).offsets
        texts.append(text[: ends[TOKENS + (number % 9 - 4) * 20 - 1][1]])
    return texts


def time_reranker(name: str, model: InstalledModel, question: str) -> dict[str, Any]:
    """Time loading and scoring all passages; count the passages scored within the default time."""
    started = perf_counter()
    reader = load_reader(model)
    loaded = perf_counter() - started
    texts = passages(model)
    seconds = []
    for number in range(ROUNDS):
        started = perf_counter()
        reader.score(f"{question} {number}", texts)  # never the same question: readings are kept
        seconds.append(perf_counter() - started)
    return {
        "model": name,
        "load_seconds": round(loaded, 2),
        "seconds": round(statistics.median(seconds), 2),
        "pairs_per_second": round(PASSAGES / statistics.median(seconds), 1),
        "pairs_per_second_stored": round(reader.pairs_per_second, 1),
        "default_time": Settings().rerank_seconds,
        "reranked_in_default_time": min(PASSAGES, int(reader.pairs_per_second * Settings().rerank_seconds)),
    }


def save_base_size(folder: Path) -> InstalledModel:
    """Save a cross-encoder of the size of bge-reranker-base, with random weights and a small tokenizer."""
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

    from tests.support.checkpoints import save_xlm_roberta

    save_xlm_roberta(folder)
    config = XLMRobertaConfig(vocab_size=250002, max_position_embeddings=514, type_vocab_size=1, num_labels=1)
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    return InstalledModel(name="base", role="rerank", path=folder, identity="", context_length=512)


def main() -> None:
    """Time both rerankers, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    shipped = resolve("minilm-l6-reader", "rerank")
    rows = [time_reranker(f"{shipped.name}, int8 ONNX", shipped, "how is a passage timed")]
    with tempfile.TemporaryDirectory() as folder:
        base = save_base_size(Path(folder))
        rows.append(time_reranker("size of bge-reranker-base, random weights", base, "how is a passage timed"))
    report = {"passages": PASSAGES, "tokens_each": TOKENS, "cores": physical_cores(), "rerankers": rows}
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(text + "\n", encoding="utf-8")
