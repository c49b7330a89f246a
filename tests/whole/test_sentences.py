"""The default mode with a real model: code says what sets documents apart, then the model writes its sentences."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run

LEASE = """# Lease of {street}

Between {owner} and the tenant, signed in {year}.

## Deposit

It is three months' rent and is paid before the keys are handed over. The landlord returns it within thirty days.

## Pets

A cat may live in the flat. A dog needs the written consent of the landlord, which is given for small dogs.
"""


@pytest.mark.slow
def test_a_model_writes_sentences_after_the_index_can_be_asked(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCAL_RAG_CONTEXT_MINUTES", "9")
    Path("leases").mkdir()
    for street, owner, year in (("4 Mill Lane", "Anna Berg", 2019), ("9 Quay Street", "Tom Hale", 2021)):
        Path(f"leases/{year}.md").write_text(LEASE.format(street=street, owner=owner, year=year))
    said = json.loads(
        run("index", "leases", "--contexts", "--profile", "tiny", "--chunk-tokens", "48", "--json").stdout
    )
    assert said["contexts"]["by_terms"] >= 2, "the sections of the leases are alike"
    written, dropped = said["contexts"].get("by_model", 0), said["contexts"].get("dropped", 0)
    assert written + dropped >= 2
    assert said["unwritten"] == 0
    assert json.loads(run("status", "--json").stdout)["contexts"]["by_model"] == written
    again = json.loads(run("index", "--json").stdout)
    assert not again["published"]
    assert again["tokens_generated"] == 0, "every sentence is kept, also what was dropped"
    found = json.loads(run("search", "deposit of Mill Lane", "--json", "--top", "9").stdout)["passages"]
    by = [passage["context_by"] for passage in found]
    assert by.count("model") == written
    assert all(bool(passage["context"]) == (passage["context_by"] is not None) for passage in found)
