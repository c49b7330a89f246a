import json
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_rag.asking import Filters
from local_rag.cluster.engines.client import Client, EngineAwayError
from local_rag.cluster.engines.qdrant_index import Place
from local_rag.cluster.engines.qdrant_indexes import QdrantIndexes
from local_rag.cluster.hosts import engine_of
from local_rag.cluster.on_request import indexes_of
from local_rag.errors import ClusterError
from local_rag.index.generations import Generations
from local_rag.indexing.vectors import embedder_identity
from local_rag.library import Library
from local_rag.model_records import InstalledModel
from local_rag.settings import resolve_settings
from local_rag.store.database import locked_store
from tests.fakes import EMBEDS_QUICKLY, QUICK, FakeEmbedder

pytest.importorskip("qdrant_edge", reason="the extra [cluster-test] is not installed")

from tests.support.certificates import Authority
from tests.support.search_engine import StandIn

# Python 3.11 leaves a socket open whose peer resets the connection before the TLS handshake, as a killed engine does.
killed_while_connecting = pytest.mark.filterwarnings("ignore:unclosed .*TruststoreSSLSocket:ResourceWarning")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """An engine over TLS, whose authority this system trusts."""
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    started = StandIn(authority)
    yield started
    started.remove()


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


def place_of(setting: str) -> Place:
    place = QdrantIndexes(setting).place()
    assert place is not None
    return place


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
    both = (
        Library(tmp_path / "here", parts=QUICK),
        Library(tmp_path / "there", parts=QUICK, search_engine={"address": setting}),
    )
    for library in both:
        library.index([folder])
    return both


def ranked(library: Library, question: str, **how: Any) -> dict[str, list[tuple[str, str]]]:
    trace = library.retrieval.trace(question, top=20, rerank=False, **how)
    with library.documents.reading() as store:
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
        live = QdrantIndexes(setting).live()
        assert live is not None
        for filters, selected in (
            (Filters(within=("copies/**",)), True),
            (Filters(within=("copies",)), True),
            (Filters(within=("./copies/1.md", "3.md")), True),
            (Filters(within=(str(many / "copies"),)), True),
            (Filters(within=(str(many),)), True),
            (Filters(within=("*1.md",)), False),
            (Filters(within=(many.name,)), False),
            (Filters(types=("md",)), True),
            (Filters(types=("txt",)), True),
            (Filters(tags=("none",)), True),
            (Filters(since=date(2020, 1, 1)), True),
            (Filters(before=date(2020, 1, 1)), True),
        ):
            assert (live.select(filters) is not None) == selected, filters
            one, other = (ranked(library, "the ferry leaves", filters=filters) for library in (here, there))
            assert one["keyword"] == other["keyword"], filters
            assert set(one["dense"]) == set(other["dense"])
        assert len(there.search("ferry", filters=Filters(within=("copies/**",)), rerank=False)) == 4


def test_a_reader_needs_no_store(tmp_path: Path, many: Path, setting: str) -> None:
    here, there = indexed(tmp_path, many, setting)
    with here, there, Library(tmp_path / "nothing", parts=EMBEDS_QUICKLY, search_engine={"address": setting}) as reader:
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
        Library(tmp_path / "there", parts=QUICK, search_engine={"address": engine.setting}) as library,
        Library(nothing, parts=EMBEDS_QUICKLY, search_engine={"address": engine.setting}) as reader,
    ):
        library.index([many])
        moved = many.rename(many.with_name("moved"))
        engine.kill()
        with pytest.raises(ClusterError):
            library.upkeep.move_root(many, moved)
        assert [root.path for root in library.upkeep.roots()] == [many], "nothing has moved"
        engine.start()
        library.upkeep.move_root(many, moved)
        found = reader.search("ferry", filters=Filters(within=(str(moved / "copies"),)), rerank=False)
        assert len(found) == 4
        assert {Path(passage.path).parent for passage in found} == {moved / "copies"}
        assert reader.documents.contents().roots == (moved,)


@killed_while_connecting
def test_an_engine_killed_while_publishing_loses_nothing(tmp_path: Path, many: Path, engine: StandIn) -> None:
    with Library(tmp_path / "there", parts=QUICK, search_engine={"address": engine.setting}) as library:
        library.index([many])
        before, killed = place_of(engine.setting).stamp, list[str]()
        collections = engine.folder / "collections"
        known = set(collections.iterdir())

        def kill() -> None:
            """Kill the engine as soon as another generation is begun, and start it again a second later."""
            while not (new := [path for path in collections.iterdir() if path not in known]):
                time.sleep(0.01)
            killed.append(new[0].name)
            engine.kill()
            aliases = (engine.folder / "aliases.json").read_text()
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
        with library.documents.reading() as store:
            assert sorted(live.chunk_ids()) == sorted(chunk.id for chunk in store.rows())
        assert "More" in library.search("zeppelin", rerank=False)[0].title


def test_a_publish_that_fails_leaves_the_index_before_and_the_next_one_removes_it(
    tmp_path: Path, many: Path, engine: StandIn
) -> None:
    with Library(tmp_path / "there", parts=QUICK, search_engine={"address": engine.setting}) as library:
        library.index([many])
        live = place_of(engine.setting)
        stray = f"{live.collection[:-8]}00000000"
        client = Client(engine_of(engine.setting))
        client.call(
            "create_collection",
            stray,
            vectors_config={},
            sparse_vectors_config={"words": client.models.SparseVectorParams()},
        )
        assert place_of(engine.setting) == live
        assert library.search("ferry", rerank=False)
        (many / "new.md").write_text("# New\n\nA zeppelin lands.\n")
        library.index([many])
        names = {one.name for one in client.call("get_collections").collections}
        assert names == {live.collection, live.facts}
        assert place_of(engine.setting).number > live.number


READS = {"retrieve", "scroll", "count", "get_aliases", "get_collections", "query_points"}


class Meanwhile(Client):
    """A client before one of whose writes, or reads, something happens."""

    def __init__(self, setting: str, calls: int, event: Callable[[], object], *, reads: bool = False) -> None:
        super().__init__(engine_of(setting))
        self.left, self.event, self.reads = calls, event, reads

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        if (method in READS) == self.reads:
            self.left -= 1
            if self.left == -1:
                self.event()
        return super().call(method, *arguments, **named)


def die() -> None:
    raise KeyboardInterrupt


def publish_in(library: Library, indexes: QdrantIndexes) -> None:
    with locked_store(library.folder) as store:
        library._indexer(store, lambda _: None, indexes).run(store.roots())


def test_a_driver_killed_at_any_write_leaves_the_generation_before_whole(
    tmp_path: Path, many: Path, engine: StandIn
) -> None:
    reader = Library(tmp_path / "nothing", parts=EMBEDS_QUICKLY, search_engine={"address": engine.setting})
    with Library(tmp_path / "there", parts=QUICK, search_engine={"address": engine.setting}) as library, reader:
        library.index([many])

        def found() -> list[tuple[str, str]]:
            return [(one.path, one.text) for one in reader.search("the ferry leaves the zeppelin", rerank=False)]

        before, place = found(), place_of(engine.setting)
        (many / "1.md").write_text("# Page 1\n\nThe zeppelin leaves.\n")
        (many / "2.md").unlink()
        for writes in range(99):
            indexes = QdrantIndexes(engine.setting, client=Meanwhile(engine.setting, writes, die))
            try:
                publish_in(library, indexes)
            except KeyboardInterrupt:
                if place_of(engine.setting) != place:  # killed after the switch, with the claim still to give back
                    break
                assert found() == before
            else:
                break
        assert writes > 9
        after = place_of(engine.setting)
        assert (after.collection, after.number) == (place.collection, place.number + 1), "beside what is kept"
        assert any(path == str(many / "1.md") and "zeppelin" in text for path, text in found())
        assert not any(path == str(many / "2.md") for path, _ in found())
        live = QdrantIndexes(engine.setting).live()
        assert live is not None
        assert live.damage() == []


@pytest.mark.parametrize("dies", [False, True])
def test_of_two_that_publish_one_library_at_once_one_stops(
    tmp_path: Path, many: Path, engine: StandIn, dies: bool
) -> None:
    with Library(tmp_path / "one", parts=QUICK, search_engine={"address": engine.setting}) as one:
        one.index([many])
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    reader = Library(tmp_path / "nothing", parts=EMBEDS_QUICKLY, search_engine={"address": engine.setting})
    one, copy = (
        Library(tmp_path / name, parts=QUICK, search_engine={"address": engine.setting}) for name in ("one", "copy")
    )
    with one, copy, reader:

        def found() -> set[tuple[str, str]]:
            passages = reader.search("zeppelin one copy", top=20, rerank=False)
            return {(Path(passage.path).name, passage.text) for passage in passages if "zeppelin" in passage.text}

        def write(by: str, turn: int) -> set[tuple[str, str]]:
            texts = {(f"{page}.md", f"# Page\n\nThe zeppelin {by}{turn} leaves.") for page in (by, "1")}
            for name, text in texts:
                (many / name).write_text(f"{text}\n")
            return texts

        last = found()

        def of_copy() -> None:
            nonlocal last
            mine = write("copy", turn)
            (many / "one.md").unlink()
            client = Meanwhile(engine.setting, 3, die) if dies else None
            try:
                publish_in(copy, QdrantIndexes(engine.setting, client=client))
            except KeyboardInterrupt:
                return
            last = mine

        stopped = 0
        for turn in range(0, 99, 9):
            (many / "copy.md").unlink(missing_ok=True)
            mine = write("one", turn)
            client, said = Meanwhile(engine.setting, turn, of_copy, reads=True), ""
            try:
                publish_in(one, QdrantIndexes(engine.setting, client=client))
            except ClusterError as error:
                said = str(error)
            assert found() == (last if said else mine), "all of one publish and nothing of the other"
            if client.left >= 0:
                break
            if said:
                stopped += 1
                assert said.startswith("Another process writes the library handbook in https://")
                assert len(said.splitlines()) == 1
            else:
                last = mine
        assert stopped > 1


class SizedEmbedder(FakeEmbedder):
    """A fake whose vectors are longer if the model lies in a folder of its own."""

    def __init__(self, model: InstalledModel) -> None:
        super().__init__(model)
        self._more = np.zeros(32 if model.path.name == "own-model" else 0, dtype=np.float32)

    def embed_query(self, text: str) -> np.ndarray:
        return np.concatenate([super().embed_query(text), self._more])


def test_of_two_that_publish_one_library_with_different_models_one_stops(
    tmp_path: Path, many: Path, engine: StandIn, embed_model: InstalledModel
) -> None:
    own = shutil.copytree(embed_model.path, tmp_path / "own-model", copy_function=os.symlink)
    with Library(tmp_path / "one", parts=QUICK, search_engine={"address": engine.setting}) as one:
        one.index([many])
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    parts = replace(QUICK, load_embedder=SizedEmbedder)
    one = Library(tmp_path / "one", parts=parts, search_engine={"address": engine.setting})
    copy = Library(tmp_path / "copy", parts=parts, search_engine={"address": engine.setting}, embed_model=str(own))
    reader = Library(tmp_path / "nothing", parts=parts, search_engine={"address": engine.setting})
    stopped = list[bool]()
    with one, copy, reader:
        for turn in range(0, 40, 4):
            (many / "1.md").write_text(f"# Page\n\nThe zeppelin {turn} leaves.\n")
            client, said = Meanwhile(engine.setting, turn, partial(copy.index, [many])), ""
            try:
                publish_in(one, QdrantIndexes(engine.setting, client=client))
            except ClusterError as error:
                said = str(error)
            assert not said or said.startswith("Another process writes the library handbook in https://")
            stopped.append(bool(said))
            live = QdrantIndexes(engine.setting).live()
            assert live is not None
            assert live.damage() == []
            assert (live.manifest["fingerprint"]["embedder"] == embedder_identity(embed_model)) is not stopped[-1]
            assert reader.search("zeppelin", rerank=False)[0].text.endswith(f"The zeppelin {turn} leaves.")
    assert set(stopped) == {True, False}


def test_a_copy_of_a_library_that_has_changed_on_its_own_is_published_as_a_whole(
    tmp_path: Path, many: Path, engine: StandIn
) -> None:
    with Library(tmp_path / "one", parts=QUICK, search_engine={"address": engine.setting}) as one:
        one.index([many])
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    with (
        Library(tmp_path / "one", parts=QUICK, search_engine={"address": engine.setting}) as one,
        Library(tmp_path / "copy", parts=QUICK, search_engine={"address": engine.setting}) as copy,
    ):
        (many / "new.md").write_text("# New\n\nA zeppelin lands.\n")
        one.index([many])
        (many / "new.md").rename(many / "other.md")
        (many / "newer.md").write_text("# Newer\n\nA balloon lands.\n")
        before = place_of(engine.setting)
        copy.index([many])
        assert place_of(engine.setting).collection != before.collection, "the same ids are of other chunks there"
        assert copy.search("balloon", rerank=False)[0].path == str(many / "newer.md")
        assert copy.search("zeppelin", rerank=False)[0].path == str(many / "other.md")


def test_one_changed_document_writes_only_itself(tmp_path: Path, engine: StandIn) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    chance = random.Random(3)
    for number in range(400):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\n{' '.join(chance.choices(WORDS, k=30))}.\n")
    with Library(
        tmp_path / "there", parts=QUICK, context="headings", search_engine={"address": engine.setting}
    ) as library:
        library.index([folder])
        points, sent = engine.written()
        (folder / "7.md").write_text("# Page 7\n\nThe captain leaves the island on a zeppelin.\n")
        library.index([folder])
    more_points, more_sent = engine.written()
    assert points > 800
    assert more_points - points < 20
    assert more_sent - sent < 50_000 < sent / 20


def test_counts_of_tokens_stay_right_over_many_publishes(tmp_path: Path, many: Path, engine: StandIn) -> None:
    here, there = indexed(tmp_path, many, engine.setting)
    indexes = QdrantIndexes(engine.setting, in_turn=2)
    with here, there:
        for number in range(4):
            (many / f"{number}.md").write_text(f"# Page {number}\n\n{' '.join(WORDS[number:])} again{number}.\n")
            here.index([many])
            with locked_store(there.folder) as store:
                there._indexer(store, lambda _: None, indexes).run(store.roots())
            for question in ("boat harbour", "again3 captain", "pay log ferry"):
                assert ranked(here, question)["keyword"] == ranked(there, question)["keyword"]
        live = indexes.live()
        assert live is not None
        assert len(set(live.differences()[0].tolist())) <= 3


def test_what_is_erased_is_in_no_collection_any_more(tmp_path: Path, many: Path, setting: str) -> None:
    with Library(tmp_path / "there", parts=QUICK, search_engine={"address": setting}) as library:
        library.index([many])
        held = place_of(setting)
        library.remove([many / "copies"], erase=True)
        client = Client(engine_of(setting))
        live = place_of(setting)
        assert live.collection != held.collection, "what is deleted from a collection may stay in its files"
        name = client.engine.name
        names = {one.name for one in client.call("get_collections").collections if one.name.startswith(f"{name}_")}
        assert names == {live.collection, live.facts}
        for collection in names:
            points, _ = client.call("scroll", collection, limit=1000, with_payload=True)
            assert not any("/copies/" in str(point.payload) for point in points)
        assert not any("copies" in passage.path for passage in library.search("ferry", rerank=False))


def test_another_library_is_not_replaced_unless_that_is_said(tmp_path: Path, many: Path, engine: StandIn) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "note.md").write_text("# Note\n\nA zeppelin lands.\n")
    with (
        Library(tmp_path / "one", parts=QUICK, search_engine={"address": engine.setting}) as one,
        Library(tmp_path / "two", parts=QUICK, search_engine={"address": engine.setting}) as two,
    ):
        one.index([many])
        place = place_of(engine.setting)
        for attempt in (lambda: two.index([other]), two.upkeep.clean):
            with pytest.raises(ClusterError, match=r"holds another library.*--replace"):
                attempt()
        assert place_of(engine.setting) == place
        assert one.search("ferry", rerank=False)
        with two.upkeep.writing() as (_, indexer):
            indexer.publish(rebuild=True, replace=True)
        assert [passage.path for passage in one.search("zeppelin", rerank=False)] == [str(other / "note.md")]


def test_vectors_are_quantized_and_shards_are_as_the_settings_say(tmp_path: Path, many: Path, engine: StandIn) -> None:
    how: dict[str, Any] = {"address": engine.setting, "shards": 3, "replicas": 2}
    with Library(tmp_path / "there", parts=QUICK, search_engine=how) as library:
        library.index([many])
        before = place_of(engine.setting)
        made = json.loads((engine.folder / "collections" / before.collection / "config.json").read_text())
        assert (made["shard_number"], made["replication_factor"]) == (3, 2)
        assert made["vectors"]["dense"]["quantization_config"]["scalar"]["type"] == "int8"
    (many / "new.md").write_text("# New\n\nA zeppelin lands.\n")
    with Library(tmp_path / "there", parts=QUICK, search_engine=how | {"shards": 4}) as library:
        library.index([many])
        assert place_of(engine.setting).collection != before.collection, (
            "the engine fixes it when it makes a collection"
        )


def test_a_library_is_copied_into_the_engine_and_back(tmp_path: Path, many: Path, setting: str) -> None:
    with Library(tmp_path / "one", parts=QUICK) as local:
        local.index([many])
        wanted = ranked(local, "ferry captain")
    with Library(tmp_path / "one", parts=QUICK, search_engine={"address": setting}) as there:
        with pytest.raises(ClusterError, match="cluster copy"):
            there.search("ferry")
        with there.upkeep.writing() as (_, indexer):
            indexer.publish(rebuild=True)
        assert ranked(there, "ferry captain")["keyword"] == wanted["keyword"]
        (tmp_path / "one" / "CURRENT").unlink()
        with there.upkeep.writing(here=True) as (_, indexer):
            indexer.publish(rebuild=True)
    with Library(tmp_path / "one", parts=QUICK) as local:
        assert ranked(local, "ferry captain") == wanted


def test_an_engine_that_is_away_is_one_sentence() -> None:
    with pytest.raises(EngineAwayError, match=r"start it, or correct the setting `search_engine\.address`"):
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
        indexes_of(resolve_settings(tmp_path, search_engine={"address": setting}), Generations(tmp_path))
