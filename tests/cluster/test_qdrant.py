import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_rag.cluster.engines.choice import indexes_of
from local_rag.cluster.engines.client import Client, EngineAwayError
from local_rag.cluster.engines.qdrant_indexes import QdrantIndexes
from local_rag.cluster.hosts import engine_of
from local_rag.errors import ClusterError
from local_rag.index.generations import Generations
from local_rag.library import Library
from local_rag.records import Filters
from local_rag.settings import resolve_settings
from tests.fakes import EMBEDS_QUICKLY, QUICK
from tests.support.search_engine import StandIn

pytest.importorskip("qdrant_edge", reason="the extra [dev] is not installed whole")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[StandIn]:
    started = StandIn(tmp_path / "engine")
    yield started
    started.kill()


@pytest.fixture
def setting(request: pytest.FixtureRequest) -> Iterator[str]:
    """A true server where one is named, else the stand-in."""
    if url := os.environ.get("LOCAL_RAG_TEST_QDRANT_URL"):
        setting = f"qdrant:{url.rstrip('/')}/local-rag-test-{random.randrange(10**9)}"
        yield setting
        client = Client(engine_of(setting))
        for one in client.call("get_collections").collections:
            if one.name.startswith(client.engine.name):
                client.call("delete_collection", one.name)
    else:
        yield request.getfixturevalue("engine").setting


WORDS = ["boat", "harbour", "leave", "Norway", "parental", "sick", "week", "island", "ferry", "captain", "getUserName"]
WORDS += ["HTTPServer", "snake_case", "log", "pay"]


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Documents of several chunks, some of them alike, some in more than one language."""
    chance, folder = random.Random(5), tmp_path / "many"
    (folder / "copies").mkdir(parents=True)
    for number in range(24):
        parts = [f"# Page {number}"]
        for part in range(chance.randrange(1, 6)):
            parts += [f"## Part {part}", " ".join(chance.choices(WORDS, k=chance.randrange(5, 60))) + "."]
        (folder / f"{number}.md").write_text("\n\n".join(parts))
    for number in range(4):
        (folder / "copies" / f"{number}.md").write_text("# Copy\n\nThe ferry leaves. 船は七時に出ます。\n")
    return folder


def indexed(tmp_path: Path, folder: Path, setting: str) -> tuple[Library, Library]:
    """Index the same folder here, and into the engine."""
    both = Library(tmp_path / "here", parts=QUICK), Library(tmp_path / "there", parts=QUICK, search_engine=setting)
    for library in both:
        library.index([folder])
    return both


def ranked(library: Library, question: str, **how: Any) -> dict[str, list[tuple[str, str]]]:
    trace = library.trace(question, top=20, rerank=False, **how)
    with library.reading() as store:
        return {
            name: [(chunk.path, chunk.chunk.text) for chunk in map(store.chunks_by_id(ids).__getitem__, ids)]
            for name, ids in trace.rankings.items()
        }


def test_the_order_of_keywords_is_the_same_for_100_of_100_questions(tmp_path: Path, many: Path, setting: str) -> None:
    here, there = indexed(tmp_path, many, setting)
    chance = random.Random(1)
    questions = [" ".join(chance.choices([*WORDS, "leaves", "unknown", "船は"], k=3)) for _ in range(100)]
    with here, there:
        assert not list((tmp_path / "there").glob("generations/*"))
        for question in questions:
            one, other = ranked(here, question), ranked(there, question)
            assert one["keyword"] == other["keyword"], question
            assert one["dense"][:10] == other["dense"][:10], question


def test_filters_let_the_same_documents_pass(tmp_path: Path, many: Path, setting: str) -> None:
    here, there = indexed(tmp_path, many, setting)
    with here, there:
        for filters in (Filters(within=("copies/**",)), Filters(types=("md",)), Filters(tags=("none",))):
            one, other = (ranked(library, "the ferry leaves", filters=filters) for library in (here, there))
            assert one["keyword"] == other["keyword"]
            assert set(one["dense"]) == set(other["dense"])
        assert len(there.search("ferry", filters=Filters(within=("copies/**",)), rerank=False)) == 4


def test_a_reader_needs_no_store(tmp_path: Path, many: Path, setting: str) -> None:
    here, there = indexed(tmp_path, many, setting)
    with here, there, Library(tmp_path / "nothing", parts=EMBEDS_QUICKLY, search_engine=setting) as reader:
        found = reader.search("the ferry leaves", rerank=False)
        wanted = there.search("the ferry leaves", rerank=False)
        assert [(one.location, one.text, one.context) for one in found] == [
            (one.location, one.text, one.context) for one in wanted
        ]
        assert any(one.context for one in found)
        assert not (tmp_path / "nothing").exists()
        (many / "new.md").write_text("# New\n\nA zeppelin lands.\n")
        there.index([many])
        assert reader.search("zeppelin", rerank=False)[0].path.endswith("new.md"), "as soon as it is published"


def test_a_reader_finds_documents_where_their_folder_has_moved(tmp_path: Path, many: Path, engine: StandIn) -> None:
    nothing = tmp_path / "nothing"
    with (
        Library(tmp_path / "there", parts=QUICK, search_engine=engine.setting) as library,
        Library(nothing, parts=EMBEDS_QUICKLY, search_engine=engine.setting) as reader,
    ):
        library.index([many])
        moved = many.rename(many.with_name("moved"))
        engine.kill()
        with pytest.raises(ClusterError):
            library.move_root(many, moved)
        assert [root.path for root in library.roots()] == [many], "nothing has moved"
        engine.start()
        library.move_root(many, moved)
        found = reader.search("ferry", filters=Filters(within=(str(moved / "copies"),)), rerank=False)
        assert len(found) == 4
        assert {Path(passage.path).parent for passage in found} == {moved / "copies"}
        assert reader.contents().roots == (moved,)


def test_an_engine_killed_while_publishing_loses_nothing(tmp_path: Path, many: Path, engine: StandIn) -> None:
    with Library(tmp_path / "there", parts=QUICK, search_engine=engine.setting) as library:
        library.index([many])
        before, killed = QdrantIndexes(engine.setting).live_name(), list[str]()
        collections = tmp_path / "engine" / "collections"
        known = set(collections.iterdir())

        def kill() -> None:
            """Kill the engine as soon as another generation is begun, and start it again a second later."""
            while not (new := [path for path in collections.iterdir() if path not in known]):
                time.sleep(0.01)
            killed.append(new[0].name)
            engine.kill()
            aliases = (tmp_path / "engine" / "aliases.json").read_text()
            killed.append("switched" if killed[0] in aliases else "not switched")
            time.sleep(1)
            engine.start()

        for number in range(60):
            (many / f"more {number}.md").write_text(f"# More\n\nA zeppelin lands on island {number}.\n")
        killer = threading.Thread(target=kill)
        killer.start()
        library.index([many])
        killer.join()
        assert killed[-1] == "not switched"
        live = QdrantIndexes(engine.setting).live()
        assert live is not None
        assert live.stamp != before
        assert live.damage() == []
        with library.reading() as store:
            assert sorted(live.chunk_ids()) == sorted(chunk.id for chunk in store.rows())
        assert "More" in library.search("zeppelin", rerank=False)[0].title


def test_a_publish_that_fails_leaves_the_index_before_and_the_next_one_removes_it(
    tmp_path: Path, many: Path, engine: StandIn
) -> None:
    with Library(tmp_path / "there", parts=QUICK, search_engine=engine.setting) as library:
        library.index([many])
        live = QdrantIndexes(engine.setting).live_name()
        stray = f"{live[:-15]}{int(live[-15:-9]) + 1:06}_00000000"
        client = Client(engine_of(engine.setting))
        client.call(
            "create_collection",
            stray,
            vectors_config={},
            sparse_vectors_config={"words": client.models.SparseVectorParams()},
        )
        assert QdrantIndexes(engine.setting).live_name() == live
        assert library.search("ferry", rerank=False)
        (many / "new.md").write_text("# New\n\nA zeppelin lands.\n")
        library.index([many])
        names = [one.name for one in client.call("get_collections").collections]
        assert stray not in names
        assert {name.removesuffix("_facts") for name in names} == {live, QdrantIndexes(engine.setting).live_name()}


def test_what_is_erased_is_in_no_collection_any_more(tmp_path: Path, many: Path, setting: str) -> None:
    with Library(tmp_path / "there", parts=QUICK, search_engine=setting) as library:
        library.index([many])
        library.remove([many / "copies"], erase=True)
        indexes = QdrantIndexes(setting)
        client = Client(engine_of(setting))
        live = indexes.live_name()
        names = {one.name for one in client.call("get_collections").collections if one.name.startswith(live[:8])}
        assert names == {live, f"{live}_facts"}
        assert not any("copies" in passage.path for passage in library.search("ferry", rerank=False))


def test_a_library_is_copied_into_the_engine_and_back(tmp_path: Path, many: Path, setting: str) -> None:
    with Library(tmp_path / "one", parts=QUICK) as local:
        local.index([many])
        wanted = ranked(local, "ferry captain")
    with Library(tmp_path / "one", parts=QUICK, search_engine=setting) as there:
        with pytest.raises(ClusterError, match="cluster copy"):
            there.search("ferry")
        with there.writing() as (_, indexer):
            indexer.publish(rebuild=True)
        assert ranked(there, "ferry captain")["keyword"] == wanted["keyword"]
        (tmp_path / "one" / "CURRENT").unlink()
        with there.writing(here=True) as (_, indexer):
            indexer.publish(rebuild=True)
    with Library(tmp_path / "one", parts=QUICK) as local:
        assert ranked(local, "ferry captain") == wanted


def test_an_engine_that_is_away_is_one_sentence() -> None:
    with pytest.raises(EngineAwayError, match="start it, or correct the setting `search_engine`"):
        QdrantIndexes("qdrant:http://127.0.0.1:9/x").live_name()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("elastic:http://127.0.0.1/x", "is not a search engine"),
        ("qdrant:http://me:secret@127.0.0.1/x", "LOCAL_RAG_QDRANT_KEY"),
        ("qdrant:http://127.0.0.1/a/b", "cannot name a library"),
        ("qdrant:http://8.8.8.8/x", "public address"),
    ],
)
def test_a_search_engine_that_cannot_be_is_refused(setting: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=said):
        indexes_of(resolve_settings(tmp_path, search_engine=setting), Generations(tmp_path))
