"""For who runs the server: /metrics, the health page, and a line for each request; no question is in any of them."""

import json
import re
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from starlette.testclient import TestClient

from local_rag.serving.job import Job
from local_rag.serving.metrics import Metrics
from local_rag.store.people_file import add_person
from local_rag.web.app import make_app
from local_rag.web.gate.authentication import Access
from local_rag.web.pages.operations_page import slow
from tests.support import served
from tests.support.served import ADDRESS, PORT, QUESTION, client

SECRET = "a-token-of-the-owner"
HOST = {"authorization": f"Bearer {SECRET}"}
LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')


def test_metrics_count_what_was_done_and_name_nothing_that_was_asked(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        for _ in range(2):
            opened.post("/ask", data={"question": QUESTION}, headers=HOST)
        opened.get("/search?q=harbour", headers=HOST)
        found = opened.get("/metrics", headers=HOST)
        assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = found.text.splitlines()
    assert [line for line in lines if not line.startswith("#") and not LINE.fullmatch(line)] == []
    assert 'local_rag_questions_total{again="no",outcome="answered"} 1' in lines
    assert 'local_rag_questions_total{again="yes",outcome="answered"} 1' in lines
    assert 'local_rag_searches_total{outcome="done"} 1' in lines
    assert "local_rag_question_seconds_count 2" in lines
    assert 'local_rag_question_seconds_bucket{le="+Inf"} 2' in lines
    assert "local_rag_documents 3" in lines
    assert 'local_rag_requests_total{method="POST",status="200"} 2' in lines
    assert "boat" not in found.text
    assert "harbour" not in found.text


def test_what_is_of_the_whole_library_is_for_who_may_see_it(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        for route in ("/metrics", "/health"):
            assert opened.get(route).status_code == 401
            assert opened.get(route, headers=HOST).status_code == 200
        for name, within, role in (("r", (), "reader"), ("e", (), "editor"), ("o", ("boat.txt",), "owner")):
            who = {"authorization": f"Bearer {add_person(folder, name, role, within=within)}"}  # type: ignore[arg-type]
            assert [opened.get(route, headers=who).status_code for route in ("/metrics", "/health")] == [403, 403]


def test_the_health_page_says_how_long_each_stage_took(folder: Path) -> None:
    with client(folder) as opened:
        assert "Nothing has been asked yet." in opened.get("/health").text
        opened.post("/ask", data={"question": QUESTION})
        opened.get("/search?q=harbour")
        page = opened.get("/health").text
        assert {"question, in all", "searching and answering", "search: dense"} <= {
            one["stage"] for one in opened.get("/health?format=json").json()["durations"]
        }
    assert "searching and answering" in page
    assert QUESTION not in page


def test_each_reason_for_slowness_is_told() -> None:
    quick = {"local_rag_models_loaded": 1.0, "local_rag_waiting_jobs": 0.0, "local_rag_indexing": 0.0}
    assert slow(quick, disk=0.001, free=10**12, indexing=False) == []
    assert len(slow(quick, disk=2.0, free=10**6, indexing=True)) == 3
    assert len(slow(dict.fromkeys(quick, 0.0), disk=0, free=10**12, indexing=False)) == 1
    assert "7 questions" in slow(quick | {"local_rag_waiting_jobs": 7.0}, disk=0, free=10**12, indexing=False)[0]


def test_an_empty_server_has_metrics_too() -> None:
    assert "local_rag_question_seconds_count 0" in Metrics().text({})


def test_only_a_job_that_fails_has_ended_early() -> None:
    metrics, done, failed = Metrics(), Future[int](), Future[int]()
    for result in (done, failed):
        metrics.watch(cast("Job[Any]", SimpleNamespace(result=result)))
    done.set_result(3)
    assert "ended_early" not in metrics.text({})
    failed.set_exception(ValueError())
    assert 'local_rag_jobs_ended_early_total{outcome="failed"} 1' in metrics.text({})


def test_each_request_is_a_line_without_what_was_asked(folder: Path) -> None:
    lines = list[str]()
    anna = add_person(folder, "Anna", "reader")
    app = make_app(
        served.worker(folder), hosts=[f"127.0.0.1:{PORT}"], access=Access(SECRET), log=lines.append, maintain=["true"]
    )
    with TestClient(app, base_url=ADDRESS) as opened:
        opened.get("/library?secret=word", headers={"authorization": f"Bearer {anna}"})
        opened.post("/ask", data={"question": QUESTION}, headers=HOST)
        opened.get("/history")
    found = [json.loads(line) for line in lines]
    assert [(one["person"], one["method"], one["path"], one["status"]) for one in found] == [
        ("Anna", "GET", "/library", 200),
        (None, "POST", "/ask", 200),
        (None, "GET", "/history", 401),
    ]
    assert not [line for line in lines if "boat" in line or "word" in line]
