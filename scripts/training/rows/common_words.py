"""Write beside the planner the words that questions about any table have: "how many", "total", "which", "wie viele".

    python -m scripts.training.rows.common_words MODEL HELD_OUT SET...

A word that questions about one file in twelve have says little about a table. Nobody chooses them by hand.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

from local_rag.tables.planner import CALIBRATION_FILE
from local_rag.text.tokens import key_of_word

_ONE_IN = 12


def main() -> None:
    model, held_out = Path(sys.argv[1]), set(Path(sys.argv[2]).read_text(encoding="utf-8").splitlines())
    files, words = set[str](), defaultdict[str, set[str]](set)
    for folder in map(Path, sys.argv[3:]):
        for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            if one["file"] not in held_out:
                files.add(one["file"])
                for word in re.findall(r"[^\W_]+", one["question"]):
                    words[key_of_word(word)].add(one["file"])
    common = sorted(word for word, some in words.items() if len(some) * _ONE_IN >= len(files))
    calibration = json.loads((model / CALIBRATION_FILE).read_bytes()) | {"common": common}
    (model / CALIBRATION_FILE).write_text(
        json.dumps(calibration, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(len(files), len(common), common)


if __name__ == "__main__":
    main()
