"""Give documents another place: nothing but paths changes, and nothing is computed again."""

from pathlib import Path

from local_rag.store.database import Store

# What is at a path or below it; ?1 is the path.
_BELOW = "(path = ?1 OR substr(path, 1, length(?1) + 1) = ?1 || '/')"


def count_below(store: Store, path: Path) -> int:
    """Count the live documents at or below a path."""
    row = store.connection.execute(f"SELECT count(*) FROM documents WHERE live AND {_BELOW}", (str(path),))  # noqa: S608
    return int(row.fetchone()[0])


def move_paths(store: Store, old: Path, new: Path) -> None:
    """Put all that is at or below a path at or below another one, all or nothing.

    Superseded documents too: the live index may still name them. On which device roots were seen is forgotten.
    """
    with store.transaction():
        for table in ("documents", "roots", "excluded", "skipped"):
            device = ", device = NULL" if table == "roots" else ""
            store.connection.execute(
                f"UPDATE OR REPLACE {table} SET path = ?2 || substr(path, length(?1) + 1){device} WHERE {_BELOW}",  # noqa: S608
                (str(old), str(new)),
            )
