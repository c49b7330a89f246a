"""Make examples of the questions about a generated office, without the wordings that are held out.

python -m scripts.training.rows.office OUTPUT SEED...
"""

import pickle
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer

from local_rag.tables.answer import views_for
from local_rag.tables.encoding import encode
from local_rag.tables.mentions import mentions
from scripts.benchmarks._office_sheets import Office, questions
from scripts.benchmarks.sheets import open_tables
from scripts.training.rows.examples import TOKENIZER, Example
from scripts.training.rows.search import Rows, programs


def gold_of(answer: object) -> list[str] | None:
    if answer is None or isinstance(answer, dict):
        return None
    if isinstance(answer, tuple):
        return [str(answer[1])]
    return [str(one) for one in answer] if isinstance(answer, list) else [str(answer)]


def main() -> None:
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    made, missed, total = [], 0, 0
    for seed in map(int, sys.argv[2:]):
        with tempfile.TemporaryDirectory() as folder:
            office = Office(seed)
            office.write(Path(folder) / "office")
            (Path(folder) / "library").mkdir()
            held = open_tables(Path(folder) / "office", Path(folder) / "library")
            kept: dict = {}
            for asked in questions(office):
                if asked.held_out or isinstance(asked.answer, dict):
                    continue
                gold = gold_of(asked.answer)
                some = []
                for view in views_for(asked.question, held):
                    mentioned = mentions(asked.question, view, held)
                    encoded = encode(tokenizer, asked.question, view, mentioned, held)
                    if encoded is None:
                        continue
                    key = view.source
                    if key not in kept:
                        kept[key] = Rows(view, held)
                    found = programs(kept[key], mentioned, gold) if gold else []
                    some.append(
                        Example(
                            asked.question,
                            encoded,
                            tuple((one.column, one.kind) for one in mentioned),
                            tuple(one.kind for one in view.columns),
                            tuple(found),
                            "office",
                        )
                    )
                total += gold is not None
                missed += gold is not None and not any(one.programs for one in some)
                # Of many tables one is meant: few of the others are enough.
                some = [one for one in some if one.programs][:2] + [one for one in some if not one.programs][:2]
                made.append(
                    (
                        {
                            "file": f"csv/office{seed}",
                            "question": asked.question,
                            "answerable": gold is not None,
                            "answer": gold,
                            "elsewhere": True,
                        },
                        some,
                    )
                )
            print(seed, total, missed, flush=True)
    Path(sys.argv[1]).write_bytes(pickle.dumps(made))


if __name__ == "__main__":
    main()
