"""Keys: each value that shapes a stored thing changes its key."""

import ast
import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from local_rag.index.protocol import index_recipe
from local_rag.index.scoring import KeywordTuning
from local_rag.index.vector_index import VectorTuning
from local_rag.indexing import situating_prompts
from local_rag.indexing.indexer import Indexer
from local_rag.indexing.situating_prompts import PROMPT, context_plan
from local_rag.indexing.vectors import EmbeddingTuning, embedder_identity, vector_keys
from local_rag.model_records import PLAIN_CONTEXT_FORM, AnswerForm, ContextForm, InstalledModel
from local_rag.reading.split import READING_VERSION, Splitting
from local_rag.text.tokens import TOKENS_VERSION

MODEL = InstalledModel(
    name="minilm", role="embed", path=Path("minilm"), identity="weights", context_length=256, pooling="mean"
)
SHAPES_NO_CONTEXT = {"_SUFFIX_TOKENS"}  # only makes room


def variants(record: Any) -> dict[str, Any]:
    """Return copies of a record, each with another value in one of its fields."""
    others: dict[type, Any] = {
        bool: True,
        int: 7,
        float: 0.123,
        str: "other",
        type(Path()): Path("other"),
        AnswerForm: AnswerForm("other"),
        ContextForm: ContextForm("other"),
        type(None): "other",
    }
    return {
        field.name: replace(record, **{field.name: others[type(getattr(record, field.name))]})
        for field in fields(record)
    }


def constants(module: ModuleType) -> dict[str, Any]:
    """Return the numbers and strings that a module gives names to."""
    return {name: value for name, value in vars(module).items() if name.isupper() and type(value) in (int, str)}


def with_constant(module: ModuleType, name: str, value: object) -> ModuleType:
    """Load a module from its source anew, with another value of a constant."""
    assert module.__file__
    tree = ast.parse(Path(module.__file__).read_text())
    place = next(
        number
        for number, node in enumerate(tree.body)
        if isinstance(node, ast.Assign)
        and name in {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    )
    tree.body[place + 1 : place + 1] = ast.parse(f"{name} = {value!r}").body
    changed = ModuleType(module.__name__)
    exec(compile(tree, module.__file__, "exec"), vars(changed))
    return changed


def distinct(values: Sequence[object]) -> bool:
    return len(set(values)) == len(values)


@pytest.mark.parametrize("name", sorted(constants(situating_prompts).keys() - {"PROMPT"} - SHAPES_NO_CONTEXT))
def test_each_constant_of_contexts_changes_their_plan(name: str) -> None:
    value = constants(situating_prompts)[name]
    changed = with_constant(situating_prompts, name, value * 2)
    assert changed.context_plan("m") != context_plan("m")
    assert with_constant(situating_prompts, name, value).context_plan("m") == context_plan("m")


def test_each_part_of_the_request_changes_the_plan_of_contexts() -> None:
    forms = [PLAIN_CONTEXT_FORM, *variants(PLAIN_CONTEXT_FORM).values()]
    assert distinct([context_plan("m", form) for form in forms])


def test_each_value_of_the_embedding_changes_the_embedder() -> None:
    models = variants(MODEL)
    shaping = {"identity", "query_prefix", "passage_prefix", "pooling"}
    identities = [embedder_identity(MODEL), *(embedder_identity(models[name]) for name in shaping)]
    tuned = [embedder_identity(MODEL, tuning) for tuning in variants(EmbeddingTuning()).values()]
    assert distinct([*identities, *tuned])
    for name in (
        "name",
        "path",
        "calibration",
        "form",
        "translates",
        "context_form",
        "adapter",
        "base",
        "int8",
        "fused_weight",
        "new_subject_below",
        "about_from",
        "close_from",
    ):
        assert embedder_identity(models[name]) == embedder_identity(MODEL), name


def test_each_part_of_a_vector_changes_its_key() -> None:
    other, quantized = replace(MODEL, identity="x"), replace(MODEL, int8=True)
    parts = [
        (MODEL, "p", "c"),
        (other, "p", "c"),
        (MODEL, "x", "c"),
        (MODEL, "p", "x"),
        (MODEL, "p", ""),
        (MODEL, "", "p"),
    ]
    keys = [vector_keys(*one) for one in parts]
    assert distinct([key for (key,) in keys])
    reference, made = vector_keys(quantized, "p", "c")
    assert (reference,) == keys[0], "a vector of the weights as they are is as good"
    assert made not in {key for (key,) in keys}


def test_each_value_of_the_indexes_changes_their_recipe() -> None:
    keywords, vectors = KeywordTuning(), VectorTuning()
    changed = {name: index_recipe(other, vectors) for name, other in variants(keywords).items()}
    assert changed.pop("around") == index_recipe(keywords, vectors), "weighs when searching, not when building"
    others = [index_recipe(keywords, other) for other in variants(vectors).values()]
    assert distinct([index_recipe(keywords, vectors), *changed.values(), *others])


def test_each_value_of_the_splitting_changes_the_split_key(tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text("one")
    splitting = Splitting(tokenizer, 100)
    (tmp_path / "other").write_text("two")
    changed = {**variants(splitting), "tokenizer": replace(splitting, tokenizer=tmp_path / "other")}
    assert Indexer.split_key(changed.pop("ocr_folder")) == Indexer.split_key(splitting), "where pages are kept"
    assert distinct([Indexer.split_key(one) for one in (splitting, *changed.values())])
    (tmp_path / "other").write_text("one")
    assert Indexer.split_key(changed["tokenizer"]) == Indexer.split_key(splitting), "the same file elsewhere"


def test_keys_are_made_of_these_values(tmp_path: Path) -> None:
    def sha256(*values: object) -> str:
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]

    assert embedder_identity(MODEL) == sha256("weights", "", "", "mean", sha256("vector", 3, 48, 0.75))
    (key,) = vector_keys(MODEL, "passage", "context")
    assert key == sha256(embedder_identity(MODEL), "passage", "context")
    assert context_plan("m", ContextForm("Situate it.")) == json.dumps(["m", "Situate it.", "", PROMPT, 1536, 64])
    assert index_recipe(KeywordTuning(), VectorTuning()) == sha256(
        "rows", 4, TOKENS_VERSION, astuple(KeywordTuning(around=0.0)), 0.35
    )
    (tmp_path / "tokenizer.json").write_text("one")
    key = Indexer.split_key(Splitting(tmp_path / "tokenizer.json", 145))
    assert key == f'["auto", 145, 0, 0, "7692c3ad3540bb80", {READING_VERSION}]'
