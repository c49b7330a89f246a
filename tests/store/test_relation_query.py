"""Only one SELECT on the copied tables is run, within limits."""

import re
import signal
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from local_rag.errors import QuestionError
from local_rag.machine import resident_bytes
from local_rag.store.relation_query import EndedError, RelationCopy


@pytest.fixture
def copy() -> Iterator[RelationCopy]:
    with closing(RelationCopy()) as made:
        made.add('we"ird; --', ["a", 'b" FROM x; --'], [(1, 10, "x"), (2, 20, "=1+1")])
        made.add("t", ["n"], [(number, number) for number in range(2000)])
        yield made


def test_a_select_gives_rows_with_their_numbers_and_says_what_is_left_out(copy: RelationCopy) -> None:
    assert copy.select('SELECT rowid, * FROM "we""ird; --"').rows == [(1, 10, "x"), (2, 20, "=1+1")]
    cut = copy.select("SELECT n FROM t", most=3)
    assert (cut.rows, cut.is_complete) == ([(0,), (1,), (2,)], False)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t",
        "UPDATE t SET n = 1",
        "INSERT INTO t VALUES (1)",
        "DROP TABLE t",
        "CREATE TABLE u (a)",
        "CREATE TEMP TABLE u (a)",
        "ATTACH DATABASE '/etc/passwd' AS p",
        "PRAGMA database_list",
        "PRAGMA query_only = OFF",
        "VACUUM INTO '/tmp/local-rag-stolen'",
        "SELECT 1; SELECT 2",
        "SELECT load_extension('x')",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM pragma_database_list",
        "SELECT randomblob(900000000)",
        "SELECT hex(zeroblob(900000000))",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "EXPLAIN SELECT 1",
        "BEGIN",
        "",
        "SELECT \0",
        "SELECT * FROM nothing",
    ],
)
def test_anything_else_is_refused(copy: RelationCopy, statement: str) -> None:
    with pytest.raises(QuestionError):
        copy.select(statement)
    assert copy.select("SELECT count(*) FROM t").rows == [(2000,)]


def test_a_query_ends_after_its_time(copy: RelationCopy) -> None:
    started = time.monotonic()
    with pytest.raises(QuestionError, match="longer than 0"):
        copy.select("SELECT count(*) FROM t a, t b, t c, t d", seconds=0.2)
    with pytest.raises(QuestionError, match="longer than 0"):
        copy.select(
            "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r", seconds=0.2
        )
    assert time.monotonic() - started < 5


def test_more_tables_may_be_added_long_after_a_query(copy: RelationCopy) -> None:
    copy.select("SELECT 1", seconds=0.01)
    time.sleep(0.02)
    copy.add("u", ["m"], [(number, number + 4) for number in range(1, 2000)])
    assert copy.select("SELECT m + n FROM u JOIN t ON t.n = u.m WHERE m = 5").rows == [(10,)]
    with pytest.raises(QuestionError):
        copy.select("DELETE FROM u")


@pytest.mark.parametrize(
    "value",
    [
        "instr(printf('%.*c', 200000, 'a') || (a.n + b.n), printf('%.*c', 100000, 'a') || 'b')",
        "replace(printf('%.*c', 200000, 'a') || (a.n + b.n), printf('%.*c', 100000, 'a') || 'b', '')",
        "printf('%.*c', 300000, 'a') || a.n || b.n LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%b'",
        "quote(printf('%.*c', 150000, 'a') || a.n || b.n)",
    ],
)
def test_no_function_holds_a_query_after_its_time(copy: RelationCopy, value: str) -> None:
    started = time.monotonic()
    with pytest.raises(QuestionError, match="longer than 0"):
        copy.select(f"SELECT count(*) FROM t a, t b WHERE {value} = 'x'", seconds=0.2)
    assert time.monotonic() - started < 10, "each of them took seconds, and none could be stopped"


@pytest.mark.parametrize(
    "function", ["json('1')", "json_patch('{}', '{}')", "sqlite_log(1, 'x')", "fts5(1)", "changes()"]
)
def test_only_functions_that_are_known_to_be_quick_are_run(copy: RelationCopy, function: str) -> None:
    with pytest.raises(QuestionError, match="not authorized"):
        copy.select(f"SELECT {function}")


def test_our_own_functions_say_what_those_of_sqlite_say(copy: RelationCopy) -> None:
    statement = (
        "SELECT instr('abcabc', 'ca'), instr('a', 'b'), instr(NULL, 'a'), "
        "replace('abab', 'b', 'xx'), replace('a', '', 'b')"
    )
    assert copy.select(statement).rows == [(3, 0, None, "axxaxx", "a")]


def test_rows_are_left_out_where_they_would_fill_the_memory(copy: RelationCopy) -> None:
    found = copy.select("SELECT printf('%300000d', n) FROM t")
    assert 0 < len(found.rows) < 200
    assert not found.is_complete
    assert len(copy.select("SELECT n FROM t", largest=100).rows) < 20


def test_a_query_that_needs_much_memory_is_ended(copy: RelationCopy) -> None:
    with pytest.raises(QuestionError, match="took"):
        copy.select("SELECT printf('%.*c', 300000, 'a') || a.n || b.n FROM t a, t b ORDER BY 1", seconds=20)


def doubling(levels: int) -> str:
    """Return a statement that takes time and memory of two to this power while it is prepared."""
    more = "".join(f", t{n} AS (SELECT a.x FROM t{n - 1} a, t{n - 1} b)" for n in range(1, levels + 1))
    return f"WITH t0 AS (SELECT 1 AS x){more} SELECT x FROM t{levels} LIMIT 1"


def test_what_sqlite_does_before_its_first_step_has_limits_too(copy: RelationCopy) -> None:
    before, started = resident_bytes(), time.monotonic()
    with pytest.raises(EndedError, match="took"):
        copy.select(doubling(25), seconds=1)
    assert time.monotonic() - started < 60, "it would take hours"
    assert resident_bytes() - before < 200_000_000, "nothing of it is in this process"


def test_who_goes_beyond_the_limits_loses_the_copy_and_can_make_another(copy: RelationCopy) -> None:
    with pytest.raises(EndedError):
        copy.select(doubling(25), seconds=1)
    assert not copy.is_running
    copy.add("t", ["n"], [(1, 7)])
    assert copy.select("SELECT n FROM t").rows == [(7,)]


def test_a_process_that_dies_is_told_and_not_waited_for(copy: RelationCopy) -> None:
    assert copy.is_running
    assert copy._process is not None
    copy._process.send_signal(signal.SIGKILL)
    with pytest.raises(EndedError):
        copy.select("SELECT 1")
    assert not copy.is_running


@pytest.mark.parametrize("name", ["trim", "ltrim", "rtrim"])
def test_what_is_cut_off_takes_linear_time(copy: RelationCopy, name: str) -> None:
    started = time.monotonic()
    texts = "printf('%.*c', 390000, 'a') || 'x', printf('%.*c', 33000, 'b') || 'a'"
    assert copy.select(f"SELECT length({name}({texts}))").rows in ([(1,)], [(390001,)])
    assert time.monotonic() - started < 10, "SQLite's own takes more than a minute"


def test_what_is_cut_off_is_what_sqlite_cuts_off(copy: RelationCopy) -> None:
    calls = [
        f"{name}({value})"
        for name in ("trim", "ltrim", "rtrim")
        for value in (
            "'  a b  '",
            "'xxaxbxx', 'x'",
            "'xyaxy', 'yx'",
            "NULL",
            "'a', NULL",
            "17, 7",
            "''",
            "'xx', 'x'",
            "'x', ''",
        )
    ]
    with closing(sqlite3.connect(":memory:")) as plain:
        for call in calls:
            assert copy.select(f"SELECT {call}").rows == plain.execute(f"SELECT {call}").fetchall(), call


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (["a", "A"], [(1, 1, 1)]),
        ([], [(1,)]),
        (["a"], [(1, 1), (1, 2)]),
        (["a"], [(1, 1, 2)]),
        (["a"], [(1, [1])]),
        (["a"], [("one", 1)]),
    ],
)
def test_a_table_that_cannot_be_copied_leaves_the_others(
    copy: RelationCopy, columns: list[str], rows: list[tuple[object, ...]]
) -> None:
    copy.select("SELECT 1")
    with pytest.raises(QuestionError):
        copy.add("odd", columns, rows)
    with pytest.raises(QuestionError, match="no such table"):
        copy.select("SELECT * FROM odd")
    copy.add("odd", ["a"], [(1, 5)])
    assert copy.select("SELECT a, (SELECT count(*) FROM t) FROM odd").rows == [(5, 2000)]


def test_a_damaged_block_leaves_the_other_tables(copy: RelationCopy) -> None:
    with pytest.raises(QuestionError):
        copy.add_blocks("odd", ["a"], [b"no rows", b"neither"])
    assert copy.select("SELECT count(*) FROM t").rows == [(2000,)]


def test_an_error_while_rows_are_read_is_raised_and_nothing_is_held(copy: RelationCopy) -> None:
    def blocks() -> Iterator[bytes]:
        yield zlib.compress(b"[[1, 0, 2]]")
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        copy.add_blocks("odd", ["a"], blocks())
    assert not copy.is_running


def test_values_and_parameters_that_sqlite_has_no_place_for_are_held_as_numbers(copy: RelationCopy) -> None:
    values = [2**63 - 1, -(2**63), 2**63, 10**300, 10**400, 1e308, "\ufffe", "a\0b", None]
    copy.add("odd", ["a"], list(enumerate(values)))
    assert [row[0] for row in copy.select("SELECT a FROM odd ORDER BY rowid").rows[:4]] == [
        2**63 - 1, -(2**63), 2.0**63, 1e300,
    ]  # fmt: skip
    assert copy.select("SELECT count(*) FROM odd WHERE a > ?", (10**30,)).rows[0][0] >= 3


def test_a_result_may_hold_bytes_and_signs_of_all_kinds(copy: RelationCopy) -> None:
    assert copy.select("SELECT x'00ff', 1e999, char(9, 34, 65534), NULL, ''").rows == [
        (b"\x00\xff", float("inf"), '\t"\ufffe', None, "")
    ]


def test_the_process_can_open_no_file_and_knows_no_variable_of_ours(copy: RelationCopy) -> None:
    assert copy._process is not None
    limits = Path(f"/proc/{copy._process.pid}/limits")
    if not limits.exists():
        pytest.skip("only Linux tells the limits of a process")
    assert re.search(r"^Max open files\s+0\s", limits.read_text(), re.MULTILINE)
    assert b"LOCAL_RAG" not in Path(f"/proc/{copy._process.pid}/environ").read_bytes()
