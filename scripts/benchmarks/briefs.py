"""Compare a brief of ten lines with people's summaries: the share of their content words that it has.

    python -m scripts.benchmarks briefs --qmsum FOLDER --squality FILE.jsonl [--lines 10] [--json FILE]

FOLDER has the meetings of QMSum as JSON files, each summed up as a whole by one person; FILE the stories of SQuALITY,
each with the plots that four people wrote. For comparison: the first ten sentences, ten at random, and ten at random
among those that are as long as the lines of the brief. Every line is looked for in the text, word for word.
"""

import argparse
import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from local_rag.digests.brief import write_brief
from local_rag.digests.statements import text_of_file
from local_rag.reading.read import as_document
from local_rag.text.languages import ENGLISH, FUNCTION_WORDS
from local_rag.text.tokens import keyword_tokens

_MARK = re.compile(r"\{[^}]*\}")
_DRAWS, _SAME_LENGTH = 5, 0.2


def meetings(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the transcript of each meeting with its summary."""
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        turns = (f"{turn['speaker']}: {_MARK.sub('', turn['content'])}" for turn in found["meeting_transcripts"])
        yield "\n".join(turns), [found["general_query_list"][0]["answer"]]


def stories(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each story with the plots that people wrote."""
    for line in file.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        yield found["document"], [one["response_text"] for one in found["questions"][0]["responses"]]


def _content(text: str) -> set[str]:
    return {word for word in keyword_tokens(text) if len(word) > 1 and word not in FUNCTION_WORDS.get(ENGLISH, ())}


def share(lines: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of the content words of summaries that lines have, in percent."""
    held = _content(" ".join(lines))
    return 100 * sum(len(held & (words := _content(one))) / max(1, len(words)) for one in references) / len(references)


def measure(documents: Iterator[tuple[str, list[str]]], lines: int) -> dict[str, float]:
    """Return the mean share of each way to choose lines, and what the briefs took."""
    random_, rows, seconds, unquoted, count = random.Random(1), list[dict[str, float]](), list[float](), 0, 0  # noqa: S311
    for text, references in documents:
        document = text_of_file(as_document(Path("document.txt"), text))
        sentences = [one.text for one in document.statements if one.kind != "heading"]
        started = time.perf_counter()
        brief = write_brief([document], lines)
        seconds.append(time.perf_counter() - started)
        chosen = [one.place.text for one in brief.lines]
        unquoted += sum(one.place.text not in document.text for one in brief.all_lines)
        count += len(brief.all_lines)
        draws = [random_.sample(sentences, min(lines, len(sentences))) for _ in range(_DRAWS)]
        alike = [[_as_long(one, sentences, random_) for one in chosen] for _ in range(_DRAWS)]
        rows.append(
            {
                "brief": share(chosen, references),
                "first": share(sentences[:lines], references),
                "random": sum(share(one, references) for one in draws) / _DRAWS,
                "random, as long": sum(share(one, references) for one in alike) / _DRAWS,
            }
        )
    means = {name: round(sum(row[name] for row in rows) / len(rows), 1) for name in rows[0]}
    more = {"documents": len(rows), "lines": count, "lines not in the text": unquoted}
    return {**means, **more, "seconds at most": round(max(seconds), 2)}


def _as_long(line: str, sentences: Sequence[str], random_: random.Random) -> str:
    length = len(line.split())
    return random_.choice([one for one in sentences if abs(len(one.split()) - length) <= _SAME_LENGTH * length])


def main() -> None:
    """Measure on what is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qmsum", type=Path)
    parser.add_argument("--squality", type=Path, nargs="*", default=[])
    parser.add_argument("--lines", type=int, default=10)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    figures = {"qmsum": measure(meetings(asked.qmsum), asked.lines)} if asked.qmsum else {}
    figures |= {f"squality {file.stem}": measure(stories(file), asked.lines) for file in asked.squality}
    print(json.dumps(figures, indent=1))
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
