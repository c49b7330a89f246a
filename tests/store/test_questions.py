"""Questions recorded in a library, by several at the same time."""

import threading
from pathlib import Path

from local_rag.store.recorded_questions import add_question, add_wrong_answer, wrong_answers


def test_no_recorded_question_is_lost_where_several_record(tmp_path: Path) -> None:
    one = "/d/boat.md:1-1", "0" * 64

    def keep() -> None:
        for number in range(30):
            add_wrong_answer(tmp_path, f"kept {number}", *one)

    def mend() -> None:
        for number in range(30):
            add_wrong_answer(tmp_path, f"mended {number}", *one)
            add_question(tmp_path, f"mended {number}", *one)

    threads = [threading.Thread(target=work) for work in (keep, mend)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wrong_answers(tmp_path)) == sorted(f"kept {number}" for number in range(30))
