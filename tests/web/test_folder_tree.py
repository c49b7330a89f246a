"""The tree of folders from which documents are chosen."""

from pathlib import Path

from local_rag.catalogue.browsing import Branch, Leaf, folder_tree
from local_rag.catalogue.contents import Contents

ROOTS = (Path("/docs"), Path("/docs/open"), Path("/alone.md"))
PATHS = {"/docs/a.md": 1, "/docs/open/b.md": 2, "/docs/open/staff/c.md": 3, "/docs/open/staff/d.md": 4, "/alone.md": 5}


def test_each_folder_counts_what_is_in_it_and_below() -> None:
    alone, docs = folder_tree(Contents(PATHS, ROOTS), most=1)
    assert alone == Leaf("alone.md", "/alone.md", "alone.md", 5)
    assert isinstance(docs, Branch)
    assert (docs.name, docs.count, [one.place for one in docs.documents]) == ("docs", 4, ["docs/a.md"])
    (opened,) = docs.folders
    (staff,) = opened.folders
    assert (opened.place, opened.count, staff.place, staff.count) == ("docs/open", 3, "docs/open/staff", 2)
    assert ([one.name for one in staff.documents], staff.more) == (["c.md"], 1)


def test_a_search_leaves_out_what_does_not_have_all_words() -> None:
    (docs,) = folder_tree(Contents(PATHS, ROOTS), containing="STAFF d.md")
    assert isinstance(docs, Branch)
    assert (docs.count, docs.folders[0].folders[0].documents[0].id) == (1, 4)
    assert folder_tree(Contents(PATHS, ROOTS), containing="nothing") == ()


def test_folders_without_end_are_a_tree_too() -> None:
    deep = "/docs/" + "x/" * 1500 + "a.md"
    (tree,) = folder_tree(Contents({deep: 1}, ROOTS))
    depth = 0
    while isinstance(tree, Branch) and tree.folders:
        tree, depth = tree.folders[0], depth + 1
    assert isinstance(tree, Branch)
    assert tree.documents[0].path == deep
    assert depth == 40
