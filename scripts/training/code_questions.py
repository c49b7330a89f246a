"""Turn documented Python code into questions and passages to train the reader."""

import ast
import random
import re
import sysconfig
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from scripts.training.sets import Entry, Pool, Text

CHARACTERS = 1100
_DEFINITIONS = 700  # of the standard library, and of the installed packages
_A_FILE = 12  # functions per file, so that large files do not dominate

_OF_A_FUNCTION = (
    "What does the {name} function do?",
    "How does {name} work?",
    "What does {name} return?",
    "Which arguments does {name} take?",
    "How is {name} implemented?",
    "How do we {words}?",
    "where is {name} defined",
)
_OF_A_METHOD = (
    "What is the purpose of the {name} method of {owner}?",
    "What does {owner}.{name} do?",
    "How does {owner} {words}?",
    "What happens when {name} is called on a {owner}?",
)
_OF_A_TYPE = (
    "What is the purpose of the {name} {kind}?",
    "What does {name} hold?",
    "Which methods does the {kind} {name} provide?",
    "How is a {name} made?",
    "What is {name} used for?",
)


def code_entries() -> list[Entry]:
    """Return questions about the standard library and the installed packages, with the definitions that answer them."""
    chance, paths = random.Random(0), sysconfig.get_paths()
    found = [
        one
        for name in ("stdlib", "purelib")
        for one in islice(python_definitions(Path(paths[name]), chance), _DEFINITIONS)
    ]
    pool = Pool([text for _, text in found])
    return [Entry("code", question, (text,), pool.near(question, own)) for own, (question, text) in enumerate(found)]


def first_sentence(comment: str) -> str:
    """Return the first sentence of a docstring on one line, or nothing if it is too short or too long."""
    paragraph = " ".join(re.split(r"\n\s*\n", comment.strip())[0].split())
    sentence = re.split(r"(?<=[a-z)`])\.\s", paragraph + " ")[0].strip().rstrip(".")
    is_link = "]:" in sentence or "crate::" in sentence
    return sentence if 4 <= len(sentence.split()) <= 35 and not is_link else ""


def questions(kind: str, name: str, owner: str, comment: str, chance: random.Random) -> tuple[str, bool]:
    """Return a question about a definition, and whether it repeats the comment, which the passage must then omit."""
    words = " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)).lower()
    sentence = first_sentence(comment)
    if not sentence or chance.random() < 0.45:
        forms = _OF_A_TYPE if kind != "function" else _OF_A_METHOD if owner else _OF_A_FUNCTION
        return chance.choice(forms).format(name=name, owner=owner, words=words, kind=kind), False
    lower = sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]
    base = re.sub(r"^(\w+?)s\b", r"\1", lower) if re.match(r"\w+[^s]s\b", lower) else lower
    if kind != "function":
        return chance.choice([sentence, f"What {lower}?" if base != lower else f"Which {kind} is {lower}?"]), True
    forms_of_a_sentence = [sentence, f"How to {base}?", f"How does the code {base}?", f"Which function can {base}?"]
    return chance.choice([*forms_of_a_sentence, f"How does {name} {base}?"]), True


def python_definitions(folder: Path, chance: random.Random) -> Iterator[tuple[str, Text]]:
    """Yield questions, each with the documented function, method or class it is about, of the files in a folder."""
    files = [
        path
        for path in sorted(folder.rglob("*.py"))
        if not re.search(r"tests?/|test_|site-packages/.*/_vendor", str(path.relative_to(folder)))
    ]
    chance.shuffle(files)
    of_package: dict[str, int] = {}
    for path in files:
        relative = path.relative_to(folder)
        if relative.parts[0] == "site-packages" or of_package.get(relative.parts[0], 0) >= 250:
            continue
        try:
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
        except (OSError, ValueError, SyntaxError):
            continue
        nodes = [
            (node, parent.name if isinstance(parent, ast.ClassDef) else "")
            for parent in ast.walk(tree)
            for node in ast.iter_child_nodes(parent)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith("__")
            and len(ast.get_docstring(node) or "") > 20
        ]
        for node, owner in chance.sample(nodes, min(_A_FILE, len(nodes))):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            question, repeats = questions(kind, node.name, owner, ast.get_docstring(node) or "", chance)
            text = _definition(source, node, with_docstring=not repeats)
            if text.count("\n") > 2:
                of_package[relative.parts[0]] = of_package.get(relative.parts[0], 0) + 1
                yield question, Text(str(relative), text)


def _definition(
    source: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, *, with_docstring: bool
) -> str:
    """Return the lines of a definition, without its docstring if that would give the answer away."""
    lines = source.splitlines()
    docstring = node.body[0]
    first, last = node.lineno - 1, node.end_lineno or node.lineno
    kept = lines[first:last]
    if not with_docstring:
        kept = lines[first : docstring.lineno - 1] + lines[docstring.end_lineno or docstring.lineno : last]
    return "\n".join(kept)[:CHARACTERS]
