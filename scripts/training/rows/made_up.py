"""Make up questions about real tables with their programs: they teach how comparisons, times and columns are said.

python -m scripts.training.rows.made_up OUTPUT PER_TABLE FOLDER_OF_FILES...
"""

import pickle
import random
import sys
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from local_rag.errors import LocalRagError
from local_rag.tables.encoding import encode
from local_rag.tables.mentions import Mention, mentions
from local_rag.tables.program import NONE, Program
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View
from scripts.training.rows.examples import TOKENIZER, Example, opened, views_of
from scripts.training.rows.search import Rows

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
ROW_WORDS = ["", "", "entries", "rows", "records", "ones", "cases", "items", "of them", "lines"]
MORE = [
    "over {n}",
    "above {n}",
    "more than {n}",
    "greater than {n}",
    "> {n}",
    "exceeding {n}",
    "higher than {n}",
    "beyond {n}",
]
LEAST = ["at least {n}", "{n} or more", "no less than {n}", "not under {n}", ">= {n}", "from {n} up", "minimum {n}"]
LESS = ["under {n}", "below {n}", "less than {n}", "fewer than {n}", "< {n}", "smaller than {n}", "short of {n}"]
MOST = ["at most {n}", "{n} or less", "no more than {n}", "up to {n}", "<= {n}", "not over {n}", "maximum {n}"]
EQUAL = ["of exactly {n}", "of {n}", "equal to {n}", "= {n}", "exactly {n}"]
SINCE = ["since {t}", "from {t} on", "from {t}", "as of {t}", "starting {t}", "{t} and later"]
AFTER = ["after {t}", "later than {t}", "past {t}"]
BEFORE = ["before {t}", "earlier than {t}", "prior to {t}", "until before {t}"]
UNTIL = ["until {t}", "up to {t}", "through {t}", "by the end of {t}", "not later than {t}"]
IN = ["in {t}", "during {t}", "for {t}", "{t}", "in {t}", "of {t}"]
HIGH = ["highest", "largest", "biggest", "most", "top", "greatest", "max", "maximum"]
LOW = ["lowest", "smallest", "least", "minimum", "min", "fewest"]


class Maker:
    """Make up questions about one view."""

    def __init__(self, view: View, held: RelationSet, draw: random.Random) -> None:
        self.view, self.held, self.draw = view, held, draw
        self.rows = Rows(view, held)
        self.numbers = [at for at, one in enumerate(view.columns) if one.kind == "number"]
        self.dates = [at for at, one in enumerate(view.columns) if one.kind == "date"]
        self.texts = [at for at, one in enumerate(view.columns) if one.kind == "text"]

    def name(self, at: int) -> str:
        words = self.view.columns[at].name.replace("_", " ").split()
        words = [word for word in words if not word.startswith("(")] or words
        if len(words) > 2 and self.draw.random() < 0.3:
            words = words[-2:]
        text = " ".join(words)
        return text.lower() if self.draw.random() < 0.8 else text

    def pick(self, some: list[str]) -> str:
        return self.draw.choice(some)

    def conditions(self, most: int) -> list[dict[str, Any]]:
        found, used = [], set()
        for _ in range(self.draw.choice([0, 1, 1, 1, 2, 2][: 3 + most])):
            at = self.draw.randrange(len(self.view.columns))
            if at in used:
                continue
            used.add(at)
            if made := self.condition(at):
                found.append(made)
        return found

    def condition(self, at: int) -> dict[str, Any] | None:
        kind, draw = self.view.columns[at].kind, self.draw
        values = [v for v in self.rows.values[at] if v is not None]
        if not values:
            return None
        present = self.rows.present[at]
        if not present.all() and draw.random() < 0.35:
            name = self.name(at)
            if draw.random() < 0.5:
                return {
                    "at": at,
                    "filled": "empty",
                    "text": self.pick(
                        [
                            f"without {name}",
                            f"with no {name}",
                            f"where {name} is missing",
                            f"{name} is empty",
                            f"that have no {name} yet",
                            f"lacking a {name}",
                        ]
                    ),
                }
            return {
                "at": at,
                "filled": "filled",
                "text": self.pick(
                    [f"with a {name}", f"where {name} is given", f"that have a {name}", f"{name} filled in"]
                ),
            }
        if kind == "text":
            value = str(draw.choice(self.rows.raw[at]) or "")
            if not value or len(value) > 40:
                return None
            name = self.name(at)
            said = value if draw.random() < 0.7 else value.lower()
            words = value.split()
            if len(words) > 1 and draw.random() < 0.25:
                said = self.pick([words[0], words[-1]])
            negated = draw.random() < 0.15
            if negated:
                text = self.pick(
                    [
                        f"not {said}",
                        f"that are not {said}",
                        f"other than {said}",
                        f"except {said}",
                        f"{name} isn't {said}",
                        f"without the {said} ones",
                    ]
                )
            else:
                text = self.pick(
                    [
                        said,
                        f"for {said}",
                        f"of {said}",
                        f"from {said}",
                        f"with {said}",
                        f"by {said}",
                        f"in {said}",
                        f"where {name} is {said}",
                        f"with {name} {said}",
                        f"that are {said}",
                        f"{name} {said}",
                    ]
                )
            return {"at": at, "value": said, "relation": "is not" if negated else "is", "text": text}
        if kind == "number":
            number = draw.choice([v for v in values if isinstance(v, int | float)] or [1])
            shown = f"{number:g}" if abs(number) < 1e6 else f"{number:.0f}"
            relation, forms = draw.choice(
                [
                    ("more", MORE),
                    ("more", MORE),
                    ("at least", LEAST),
                    ("less", LESS),
                    ("less", LESS),
                    ("at most", MOST),
                    ("is", EQUAL),
                ]
            )
            said, name = self.pick(forms).format(n=shown), self.name(at)
            text = self.pick(
                [
                    f"with {name} {said}",
                    f"{name} {said}",
                    f"with {said} {name}",
                    f"where {name} is {said}",
                    f"{said} {name}",
                ]
            )
            return {"at": at, "number": float(number), "relation": relation, "text": text}
        value = str(draw.choice(values))
        if len(value) < 7 or not value[:4].isdigit() or not value[5:7].isdigit():
            return None
        year, month = value[:4], MONTHS[min(12, max(1, int(value[5:7]))) - 1]
        month = draw.choice([month, month.lower(), month[:3], month[:3].lower()]) if month != "May" else "May"
        shown = draw.choice(
            [
                month,
                f"{month} {year}",
                month,
                year,
                f"{int(value[8:10])} {month}" if value[8:10].isdigit() else month,
                value[:10],
                f"Q{(int(value[5:7]) + 2) // 3}",
            ]
        )
        relation, forms = draw.choice(
            [
                ("is", IN),
                ("is", IN),
                ("is", IN),
                ("at least", SINCE),
                ("more", AFTER),
                ("less", BEFORE),
                ("at most", UNTIL),
            ]
        )
        text = self.pick(forms).format(t=shown)
        if len(self.dates) > 1 and draw.random() < 0.7:
            text = self.pick([f"{self.name(at)} {text}", f"with {self.name(at)} {text}"])
        return {"at": at, "time": shown, "relation": relation, "text": text}

    def question(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]] | None:
        draw = self.draw
        operation = draw.choice(
            [
                "count",
                "count",
                "sum",
                "sum",
                "mean",
                "min",
                "max",
                "list",
                "list",
                "list",
                "top",
                "top",
                "grouped",
                "grouped",
                "whether",
                "distinct",
                "share of rows",
                "share of sum",
                "difference of columns",
                "range",
                "pair",
            ]
        )
        conditions = self.conditions(2)
        said = " ".join(one["text"] for one in conditions)
        rows = self.pick(ROW_WORDS)
        fields: dict[str, Any] = {}
        if operation in {"sum", "mean", "min", "max", "share of sum", "range"} or (
            operation in {"top", "grouped"} and self.numbers and draw.random() < 0.8
        ):
            if not self.numbers:
                return None
            fields["measure"] = draw.choice(self.numbers)
        name = self.name(fields["measure"]) if "measure" in fields else ""
        if operation == "count":
            text = self.pick(
                [
                    f"how many {rows} {said}",
                    f"number of {rows} {said}",
                    f"count {rows} {said}",
                    f"how many {rows} are there {said}",
                    f"{said}: how many",
                    f"how often {said}",
                    f"how many times {said}",
                ]
            )
            return text, {"operation": "count"}, conditions
        if operation == "sum":
            text = self.pick(
                [
                    f"total {name} {said}",
                    f"sum of {name} {said}",
                    f"how much {name} {said}",
                    f"how many {name} {said} in total",
                    f"{name} {said} altogether",
                    f"add up {name} {said}",
                    f"{name} total {said}",
                    f"how much {name} did we have {said}",
                    f"overall {name} {said}",
                ]
            )
        elif operation == "mean":
            text = self.pick(
                [
                    f"average {name} {said}",
                    f"mean {name} {said}",
                    f"avg {name} {said}",
                    f"what is the {name} on average {said}",
                    f"typical {name} {said}",
                    f"{name} per row on average {said}",
                ]
            )
        elif operation in {"min", "max"}:
            text = self.pick(
                [
                    f"{self.pick(LOW if operation == 'min' else HIGH)} {name} {said}",
                    f"what was the {self.pick(LOW if operation == 'min' else HIGH)} {name} {said}",
                ]
            )
        elif operation == "range":
            text = self.pick(
                [
                    f"difference between the highest and lowest {name} {said}",
                    f"spread of {name} {said}",
                    f"gap between the biggest and smallest {name} {said}",
                ]
            )
        elif operation == "list":
            if not self.view.columns:
                return None
            at = draw.randrange(len(self.view.columns))
            if not conditions or any(one["at"] == at for one in conditions):
                return None
            fields["shown"], label = at, self.name(at)
            who = ["who " + said] if at in self.texts else []
            text = self.pick(
                [
                    f"what is the {label} {said}",
                    f"which {label} {said}",
                    f"{label} {said}",
                    f"list the {label} {said}",
                    f"show me every {label} {said}",
                    f"give me the {label}s {said}",
                    f"{said}, which {label}",
                    f"what {label} {said}",
                    f"name the {label} {said}",
                    *who[:1],
                ]
            )
        elif operation == "distinct":
            if not self.texts:
                return None
            fields["shown"] = draw.choice(self.texts)
            label = self.name(fields["shown"])
            text = self.pick(
                [
                    f"how many different {label}s {said}",
                    f"how many distinct {label} {said}",
                    f"number of different {label} {said}",
                    f"how many {label}s in all, each counted once {said}",
                    f"how many unique {label} {said}",
                ]
            )
        elif operation == "top":
            at = draw.choice(self.texts or [NONE])
            by = fields.get("measure", draw.choice(self.dates or [NONE]))
            if NONE in {at, by}:
                return None
            fields |= {"measure": by, "shown": at}
            fields["direction"] = draw.choice(["max", "min"])
            label, name = self.name(at), self.name(by)
            word = self.pick(
                (HIGH if fields["direction"] == "max" else LOW)
                if by in self.numbers
                else (
                    ["latest", "last", "most recent", "newest"]
                    if fields["direction"] == "max"
                    else ["earliest", "first", "oldest"]
                )
            )
            some = draw.choice(["", "", "", "3", "three", "5", "2", "10"])
            if some:
                fields["limit"] = some
                text = self.pick(
                    [
                        f"{some} {label}s with the {word} {name} {said}",
                        f"top {some} {label} by {name} {said}"
                        if word in HIGH
                        else f"the {some} {label}s with {word} {name} {said}",
                        f"which {some} {label}s have the {word} {name} {said}",
                    ]
                )
            else:
                text = self.pick(
                    [
                        f"which {label} has the {word} {name} {said}",
                        f"{label} with the {word} {name} {said}",
                        f"who had the {word} {name} {said}",
                        f"what {label} had the {word} {name} {said}",
                        f"{said}, {label} with {word} {name}",
                    ]
                )
        elif operation == "grouped":
            options = self.texts + self.dates
            if not options:
                return None
            at = draw.choice(options)
            group, direction = self.name(at), draw.choice(["max", "max", "min", ""])
            fields |= {"group": at, "direction": direction}
            if at in self.dates:
                fields["part"] = draw.choice(["month", "month", "year", "quarter"])
                group = fields["part"]
            if "measure" not in fields:
                operation = "count"
                most = "most" if direction == "max" else "fewest"
                text = (
                    self.pick(
                        [
                            f"which {group} has the {most} {rows} {said}",
                            f"{group} with the {most} {rows} {said}",
                            f"which {group} comes up {most} often {said}",
                            f"who had the {most} {rows} {said}",
                        ]
                    )
                    if direction
                    else self.pick(
                        [
                            f"how many {rows} per {group} {said}",
                            f"count by {group} {said}",
                            f"number of {rows} for each {group} {said}",
                        ]
                    )
                )
            else:
                operation = draw.choice(["sum", "sum", "mean"])
                word = self.pick(HIGH if direction == "max" else LOW)
                kind = (
                    self.pick(["total", "summed", "overall", ""])
                    if operation == "sum"
                    else self.pick(["average", "mean"])
                )
                text = (
                    self.pick(
                        [
                            f"which {group} has the {word} {kind} {name} {said}",
                            f"{group} with the {word} {kind} {name} {said}",
                            f"who has the {word} {kind} {name} {said}",
                        ]
                    )
                    if direction
                    else self.pick(
                        [
                            f"{kind or 'total'} {name} per {group} {said}",
                            f"{kind or 'total'} {name} by {group} {said}",
                            f"{name} for each {group}, {kind or 'total'} {said}",
                        ]
                    )
                )
        elif operation == "whether":
            if not conditions:
                return None
            text = self.pick(
                [
                    f"are there any {rows} {said}",
                    f"is there one {said}",
                    f"did we have any {said}",
                    f"do we have {rows} {said}",
                    f"was there anything {said}",
                ]
            )
        elif operation.startswith("share"):
            if not conditions:
                return None
            fields["shown"] = conditions[-1]["at"]
            of = name or rows
            text = self.pick(
                [
                    f"what percentage of {of} is {said}",
                    f"share of {of} {said} in percent",
                    f"what % of {of} {said}",
                    f"proportion of {of} {said}",
                ]
            )
            if len(conditions) > 1:
                text = self.pick(
                    [
                        f"of {of} {conditions[0]['text']}, what share is {conditions[1]['text']}",
                        f"what percentage of {of} {conditions[0]['text']} is {conditions[1]['text']}",
                    ]
                )
        elif operation in {"difference of columns", "pair"}:
            if len(self.numbers) < 2:
                return None
            left, right = draw.sample(self.numbers, 2)
            fields |= {"left": left, "right": right}
            a, b = self.name(left), self.name(right)
            if operation == "pair":
                fields["pair"] = "more"
                swap = draw.random() < 0.5
                phrase = (
                    self.pick([f"{b} was less than {a}", f"{b} below {a}", f"less {b} than {a}"])
                    if swap
                    else self.pick(
                        [f"{a} was more than {b}", f"{a} above {b}", f"more {a} than {b}", f"{a} exceeded {b}"]
                    )
                )
                if draw.random() < 0.5:
                    operation = "count"
                    text = self.pick(
                        [
                            f"how many {rows} where {phrase} {said}",
                            f"number of {rows} with {phrase} {said}",
                            f"how often was {phrase} {said}",
                        ]
                    )
                else:
                    if not self.texts:
                        return None
                    operation, fields["shown"] = "list", draw.choice(self.texts)
                    text = self.pick(
                        [
                            f"which {self.name(fields['shown'])} had {phrase} {said}",
                            f"list the {self.name(fields['shown'])} where {phrase} {said}",
                        ]
                    )
            else:
                text = self.pick(
                    [
                        f"{a} minus {b} {said}",
                        f"difference between total {a} and total {b} {said}",
                        f"how much more {a} than {b} {said}",
                        f"by how much does {a} exceed {b} {said}",
                    ]
                )
        else:
            return None
        return text, {"operation": operation, **fields}, conditions

    def example(self, tokenizer: Tokenizer) -> Example | None:
        made = self.question()
        if made is None:
            return None
        text, fields, conditions = made
        text = " ".join(text.split())
        if self.draw.random() < 0.3:
            text = (
                self.pick(
                    ["please ", "can you tell me ", "hi, ", "quick one: ", "I need ", "tell me ", "for the report: "]
                )
                + text
            )
        if self.draw.random() < 0.4:
            text += "?"
        found = mentions(text, self.view, self.held)
        relations = [""] * len(found)
        filled = [""] * len(self.view.columns)
        for one in conditions:
            if "filled" in one:
                filled[one["at"]] = one["filled"]
                continue
            at = next((number for number, other in enumerate(found) if _is(one, other, text)), None)
            if at is None:
                return None
            relations[at] = one["relation"]
        if limit := fields.pop("limit", ""):
            at = next(
                (
                    number
                    for number, one in enumerate(found)
                    if one.kind == "limit" and text[one.start : one.end] == limit
                ),
                None,
            )
            if at is None:
                return None
            relations[at] = "is"
        encoded = encode(tokenizer, text, self.view, found, self.held)
        if encoded is None:
            return None
        program = Program(relations=tuple(relations), filled=tuple(filled), **fields)
        return Example(
            text,
            encoded,
            tuple((one.column, one.kind) for one in found),
            tuple(one.kind for one in self.view.columns),
            (program,),
            "made up",
        )


def _is(wanted: dict[str, Any], one: Mention, text: str) -> bool:
    if one.column != wanted["at"]:
        return False
    if "number" in wanted:
        return one.kind == "number" and abs(one.number - wanted["number"]) < 1e-9
    if "time" in wanted:
        return one.kind == "time" and text[one.start : one.end].lower() in wanted["time"].lower()
    return one.kind in {"value", "choice"} and (
        text[one.start : one.end].lower() == wanted["value"].lower()
        if one.end
        else one.words.lower() == wanted["value"].lower()
    )


def main() -> None:
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    draw, out, per = (
        random.Random(int(sys.argv[2].partition("x")[2] or 11)),
        Path(sys.argv[1]),
        int(sys.argv[2].partition("x")[0]),
    )
    made = []
    paths = [
        path for folder in sys.argv[3:] for path in sorted(Path(folder).rglob("*")) if path.suffix in {".csv", ".xlsx"}
    ]
    draw.shuffle(paths)
    for path in paths[:900]:
        wiki = "wikitable" in str(path)
        try:
            with opened(path, text=path.read_text().replace('\\"', '""').encode() if wiki else None) as held:
                for view in views_of(held)[:3]:
                    maker = Maker(view, held, draw)
                    if not 3 <= maker.rows.count <= 1000:
                        continue
                    count = 0
                    for _ in range(4 * per):
                        if count < (2 if wiki else per) and (one := maker.example(tokenizer)):
                            count += 1
                            made.append(
                                (
                                    {
                                        "file": f"csv/{path.name}" if wiki else path.name,
                                        "question": one.question,
                                        "answerable": True,
                                        "answer": [],
                                        "elsewhere": True,
                                    },
                                    [one],
                                )
                            )
        except (LocalRagError, ValueError, OSError) as error:
            print(path.name, repr(error)[:150], flush=True)
    out.write_bytes(pickle.dumps(made))
    print(len(made))
    for asked, [one] in draw.sample(made, 25):
        p = one.programs[0]
        print(
            asked["question"], "|", p.operation, p.measure, p.shown, p.group, p.direction, [r for r in p.relations if r]
        )


if __name__ == "__main__":
    main()
