"""Comments of markup languages are blanked out; what only looks like one stays, and so do all lines."""

import pytest

from local_rag.reading.remarks import blank_remarks


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".org", "* Crane\nIt lifts 12 t.\n# gone\n  # gone\n#+BEGIN_COMMENT\ngone\n#+END_COMMENT\nKept"),
        (".adoc", "= Crane\n\n// gone\n////\ngone\n\n////\nKept"),
        (".rst", "Crane\n=====\n\n.. gone one\n   gone on\n\n   gone too\n\nKept\n\n..\n   gone"),
        (".tex", "Lift % gone\n\\begin{comment}\ngone\n\\end{comment}\nKept"),
    ],
)
def test_comments_are_blank(suffix: str, text: str) -> None:
    blanked = blank_remarks(text, suffix)
    assert "gone" not in blanked
    assert "Kept" in blanked
    assert list(map(len, blanked.split("\n"))) == list(map(len, text.split("\n")))


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".org", "#+TITLE: Crane\n#tag\n#+BEGIN_SRC sh\n# a comment of code\n#+END_SRC"),
        (".org", "#+BEGIN_COMMENT\nnever ends"),
        (".adoc", "----\n// of code\n----\nhttps://quay.example/a // b\n/// c"),
        (".rst", ".. note:: Low tide\n\n   Wait.\n\n.. _target:\n.. [1] A note.\n.. |a| image:: b\n\n::\n\n  .. code"),
        (".tex", "5\\% of \\url{https://quay.example/a%20b}, \\verb|%|\n\\begin{verbatim}\n% code\n\\end{verbatim}"),
        (".txt", "% a\n# b\n// c\n.. d"),
    ],
)
def test_what_is_no_comment_stays(suffix: str, text: str) -> None:
    assert blank_remarks(text, suffix) == text
