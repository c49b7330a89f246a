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
