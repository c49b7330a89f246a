"""Only one SELECT on the copied tables is run, within limits."""

import time

import pytest

from local_rag.errors import QuestionError
from local_rag.store.relation_query import RelationCopy


@pytest.fixture
def copy() -> RelationCopy:
    made = RelationCopy()
    made.add('we"ird; --', ["a", 'b" FROM x; --'], [(1, 10, "x"), (2, 20, "=1+1")])
    made.add("t", ["n"], [(number, number) for number in range(2000)])
    return made


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


def test_more_tables_may_be_added_after_a_query(copy: RelationCopy) -> None:
    copy.select("SELECT 1")
    copy.add("u", ["m"], [(1, 5)])
    assert copy.select("SELECT m + n FROM u JOIN t ON t.n = u.m").rows == [(10,)]
    with pytest.raises(QuestionError):
        copy.select("DELETE FROM u")
