"""Which chunks lack a sentence, and in which order their documents get them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from local_rag.store.context_rows import (
    count_unwritten,
    documents_to_write,
    forget_other_sentences,
    plan_code_contexts,
    plan_sentences,
    put_context,
)
from local_rag.store.database import Store
from tests.store.test_database import put


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, create=True)) as store:
        yield store


def waiting(store: Store, plan: str = "plan") -> tuple[list[str], int]:
    return [Path(one.path).name for one in documents_to_write(store, plan)], count_unwritten(store, plan)


def test_documents_wait_by_need_until_each_of_their_chunks_has_a_sentence(store: Store) -> None:
    needs = {"a": None, "b": 0.5, "c": 0.9}
    ids = {name: put(store, name) for name in needs}
    chunks = {name: [chunk.id for chunk in store.chunks(document)] for name, document in ids.items()}
    for name, need in needs.items():
        plan_code_contexts(store, ids[name], "code", [(chunk, "said", need) for chunk in chunks[name]])
    assert waiting(store) == (["c", "b", "a"], sum(map(len, chunks.values())))
    plan_sentences(store, ids["c"], "plan", [(chunk, f"c{chunk}") for chunk in chunks["c"]])
    assert waiting(store) == (["c", "b", "a"], sum(map(len, chunks.values()))), "planned, and not written"
    for chunk in chunks["c"]:
        put_context(store, f"c{chunk}", "", "dropped")
    assert waiting(store) == (["b", "a"], len(chunks["a"] + chunks["b"])), "what was dropped is not asked for again"
    assert waiting(store, "other")[0] == ["c", "b", "a"], "it has no sentence of another model"
    forget_other_sentences(store, "other")
    plan_sentences(store, ids["c"], "other", [(chunk, f"c{chunk}") for chunk in chunks["c"]])
    assert waiting(store, "other")[0] == ["b", "a"]


def test_what_is_no_longer_live_waits_for_nothing(store: Store) -> None:
    document = put(store, "a")
    (chunk,) = store.chunks(document)
    plan_sentences(store, document, "plan", [(chunk.id, "k")])
    found = store.document(document)
    assert found
    store.supersede([found])
    assert waiting(store) == ([], 0)
