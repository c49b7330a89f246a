"""Build examples to train an answer model on: prompts and answers in tokens, in the words of the program itself.

Passages become sources by the program's own selection, with a reader that knows what answers, and a number of tokens
that differs from prompt to prompt. A question whose passages are left out cannot be answered, nor one with a name or
year changed; the answer is then the refusal. Writes OUTPUT/examples.npz, and OUTPUT/held_out.jsonl for `evaluate`.
"""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from local_rag.answering.prompt import closing_prompt, sources_prompt
from local_rag.answering.selection import Source, select_sources
from local_rag.asking import Turn
from local_rag.errors import QuestionError
from local_rag.llama.generator import Vocabulary
from local_rag.llama.models_in_use import open_vocabulary
from local_rag.model_records import AnswerForm
from local_rag.models.registry import load_registry
from local_rag.passage_records import Passage
from scripts.training.answers.examples import Examples
from scripts.training.answers.gguf_weights import end_token
from scripts.training.changes import Values
from scripts.training.sets import Entry, Text, normalised, read_sets

FORM_OF = "qwen2.5-coder-1.5b-answers"  # the adapters of the registry have one form
_BRIEF = ("in one or two short sentences", "in a few words")  # what spans of passages answer
LONGEST = 1700  # tokens of a prompt
HELD_OUT = 11  # one topic of so many
# How many tokens of sources are shown, and how often.
_SHOWN = {120: 25, 220: 15, 320: 18, 450: 14, 650: 16, 900: 12}
_OTHERS = 6  # passages that do not answer, at most
# The share of the questions of a source that are used, all of the others. Every model has seen SQuAD 1.
_SHARES = {
    "squad1": 0.0,
    "squad2": 0.55,
    "squad2-near": 0.8,
    "newwiki": 0.2,
    "xquad": 0.5,
    "covid": 0.45,
    "tatqa": 0.4,
    "nq": 0.8,
    "fetaqa": 0.75,
    "faq": 0.75,
    "faq-near": 0.75,
}
_TIMES = 2  # prompts with other sources of a question whose answer is a sentence
_ABSENT = 0.3  # share of the questions that are asked again without their passages
_CHANGED = 0.4  # share of the written questions that are asked again with a value changed


@dataclass(frozen=True, slots=True)
class Known:
    """A reading by somebody who knows what answers: such text is likely, all other text as likely as chance has it."""

    text: str
    evidence: Sequence[str]
    seed: str
    relevance: float = 0.0
    answers: float = 0.0

    def sentence(self, start: int, end: int) -> float:
        """Return the logit of a part of the text."""
        part = normalised(self.text[start:end])
        if any(part in one or one in part for one in self.evidence if part and one):
            return 4.0
        return random.Random(f"{self.seed} {part}").uniform(0.0, 4.0)


class KnowingReader:
    """A reader that knows which strings answer; `seed` decides what else it thinks likely."""

    fused_weight = 1.0
    pairs_per_second = 1.0

    def __init__(self, evidence: Sequence[str], seed: str) -> None:
        self._evidence, self._seed = [normalised(one) for one in evidence], seed

    def score(self, _question: str, passages: Sequence[str]) -> list[Known]:
        """Return what each passage says about the question."""
        return [Known(text, self._evidence, self._seed) for text in passages]


def variants(entries: Sequence[Entry], chance: random.Random) -> Iterator[Entry]:
    """Yield the entries that become prompts: some several times, some without what answers, some changed."""
    values = Values.of(entry for entry in entries if entry.topic)
    for entry in entries:
        if chance.random() >= _SHARES.get(entry.source, 1.0) or (entry.gold and not entry.answer):
            continue
        times = 1 if entry.brief or not entry.gold else _TIMES
        yield from [replace(entry, others=_some(entry, chance)) for _ in range(times)]
        if entry.gold and entry.others and chance.random() < _ABSENT:
            yield _unanswered(entry, "absent", entry.question, entry.others)
        if entry.gold and entry.topic and chance.random() < _CHANGED:
            texts = (*entry.gold, *entry.others)
            question = values.changed(entry.question, "", chance)
            if question and _is_about_something_else(entry.question, question, texts):
                yield _unanswered(entry, "changed", question, texts)


def _some(entry: Entry, chance: random.Random) -> tuple[Text, ...]:
    """Draw some of the passages that do not answer; something is always shown."""
    most = chance.randint(0 if entry.gold else 1, _OTHERS)
    return tuple(chance.sample(entry.others, min(len(entry.others), most)))


def _unanswered(entry: Entry, how: str, question: str, texts: Sequence[Text]) -> Entry:
    return replace(entry, source=f"{entry.source}-{how}", question=question, gold=(), others=tuple(texts), answer="")


def _is_about_something_else(question: str, changed: str, texts: Sequence[Text]) -> bool:
    """Return whether the value is now a name or a year that no passage has; another number may be asked for as well."""
    new = set(normalised(changed).split()) - set(normalised(question).split())
    shown = {word for text in texts for word in normalised(f"{text.title} {text.text}").split()}
    return bool(new) and not new & shown and all(word.isalpha() or len(word) == 4 for word in new)


def sources_of(entry: Entry, tokens: int, seed: str) -> list[Source]:
    """Return the sources that a model is shown, best first; none if what answers is not among them."""
    texts = (*entry.gold, *entry.others[: _OTHERS + 1])
    passages = [_passage(number, text) for number, text in enumerate(texts)]
    random.Random(seed).shuffle(passages)
    sources = select_sources(
        entry.question,
        [passages],
        count_tokens=lambda text: len(text) // 4,
        reader=KnowingReader(entry.evidence if entry.gold else (), seed),
        tokens=tokens,
    )
    said = set(normalised(" ".join(source.text for source in sources)).split())
    needed = {word for one in entry.evidence for word in normalised(one).split()} if entry.gold else set()
    return sources if needed <= said else []


def _passage(number: int, text: Text) -> Passage:
    return Passage(
        chunk_id=number,
        path=f"{number}.md",
        title=text.title,
        text=text.text,
        terms="",
        sentence="",
        headings=(),
        page=None,
        line=None,
        end_line=None,
        score=0.0,
    )


def prompt_of(entry: Entry, request: str, vocabulary: Vocabulary, seed: str) -> list[int] | None:
    """Return a prompt as the program writes it, in tokens; None if what answers has no place in it."""
    tokens = random.Random(seed).choices(list(_SHOWN), list(_SHOWN.values()))[0]
    sources = sources_of(entry, tokens, seed)
    before = Turn(entry.before) if entry.before else None
    try:
        prefix, used = sources_prompt(entry.question, sources, model=vocabulary, room=LONGEST, before=before)
    except QuestionError:  # a table that is longer than a prompt
        return None
    if not sources or len(used) < len(sources):
        return None
    asked = request.replace(*_BRIEF) if entry.brief else request
    return prefix + closing_prompt(asked, vocabulary)


def is_held_out(entry: Entry) -> bool:
    """Return whether an entry is kept for evaluation: by topic, since entries of one topic share passages."""
    return bool(entry.topic) and int(hashlib.sha256(entry.topic.encode()).hexdigest(), 16) % HELD_OUT == 0


def build(
    entries: Sequence[Entry], model: Path, form: AnswerForm, seed: int
) -> tuple[Examples, list[Mapping[str, object]], Counter[str]]:
    """Return the examples, the held-out ones as records, and how many examples each source gave."""
    chance = random.Random(seed)
    drawn = list(variants(entries, chance))
    chance.shuffle(drawn)
    counts, held, records = Counter[str](), list[bool](), list[Mapping[str, object]]()
    prompts, answers, answerable = list[list[int]](), list[list[int]](), list[bool]()
    with open_vocabulary(model) as vocabulary:
        end = end_token(model)
        for number, entry in enumerate(drawn):
            prompt = prompt_of(entry, form.request, vocabulary, f"{seed} {number}")
            if prompt is None:
                counts["what answers did not fit"] += 1
                continue
            counts[entry.source] += 1
            prompts.append(prompt)
            answers.append([*vocabulary.tokenize(entry.answer or form.refusal), end])
            answerable.append(bool(entry.gold))
            held.append(is_held_out(entry))
            if held[-1]:
                fields = {"source": entry.source, "question": entry.question, "answer": entry.answer, "prompt": prompt}
                records.append(fields)
        first = vocabulary.tokenize(form.refusal)[0]
    pairs = zip(prompts, answers, strict=True)
    examples = Examples(
        tokens=np.array([token for prompt, answer in pairs for token in (*prompt, *answer)], dtype=np.int32),
        prompts=np.array([len(prompt) for prompt in prompts], dtype=np.int32),
        answers=np.array([len(answer) for answer in answers], dtype=np.int32),
        answerable=np.array(answerable),
        held_out=np.array(held),
        refusal=first,
    )
    return examples, records, counts


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(file_okay=False, path_type=Path))
@click.option("--seed", default=7, show_default=True)
def main(folder: Path, model: Path, output: Path, seed: int) -> None:
    entries = list(read_sets(folder, lambda text: click.echo(text, err=True)))
    examples, records, counts = build(entries, model, load_registry().models[FORM_OF].form, seed)
    output.mkdir(parents=True, exist_ok=True)
    examples.save(output / "examples.npz")
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    (output / "held_out.jsonl").write_text("".join(lines), encoding="utf-8")
    share = 100 * examples.answerable.mean()
    click.echo(json.dumps(counts, indent=1))
    click.echo(
        f"{len(examples.prompts)} examples, {len(records)} held out, {len(examples.tokens)} tokens, "
        f"{share:.0f} % answerable, {examples.prompts.mean():.0f} tokens in a prompt"
    )


if __name__ == "__main__":
    main()
