"""Source code with a grammar: chunks are whole functions below the name of what contains them."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.reading.formats import FORMATS
from local_rag.reading.read import parse, read
from local_rag.reading.split import split
from local_rag.reading.structure import lacks_grammar, outline_of
from tests.reading.test_split import WORDS, count

# By file: code in which each call `mark_N()` stands below the headings that are given for it.
FILES: dict[str, tuple[str, dict[int, tuple[str, ...]]]] = {
    "lamp.c": (
        """\
struct lamp {
  int w;
};

/* Light it. */
static int *
light(struct lamp *l)
{
  mark_1();
  return 0;
}
""",
        {1: ("function light",)},
    ),
    "lamp.cpp": (
        """\
namespace harbour {
  class Lamp : public Ship {
   public:
    void light(int a) {
      mark_1();
    }
  };
}

template <class T>
T &Lamp::get(T a) {
  mark_2();
}
""",
        {1: ("namespace harbour", "class Lamp", "function light"), 2: ("function Lamp::get",)},
    ),
    "lamp.h": (
        """\
class Lamp {
 public:
  void light() {
    mark_1();
  }
};
""",
        {1: ("class Lamp", "function light")},
    ),
    "Lamp.cs": (
        """\
namespace Harbour
{
    /// <summary>A lamp.</summary>
    [Serializable]
    public class Lamp
    {
        public void Light()
        {
            mark_1();
        }
    }
}
""",
        {1: ("namespace Harbour", "class Lamp", "method Light")},
    ),
    "lamp.go": (
        """\
package lamp

// Lamp shines.
type Lamp struct {
\tw int
}

// Light lights.
func (l *Lamp) Light() {
\tmark_1()
}

func main() {
\tmark_2()
}
""",
        {1: ("method Lamp.Light",), 2: ("function main",)},
    ),
    "Lamp.java": (
        """\
package lamp;

/** A lamp. */
@Entity
public class Lamp<T> {
    public Lamp() {
        mark_1();
    }

    @Override
    public void light() {
        mark_2();
    }
}
""",
        {1: ("class Lamp", "constructor Lamp"), 2: ("class Lamp", "method light")},
    ),
    "lamp.js": (
        """\
class Lamp extends Ship {
  get watts() {
    mark_1();
  }
}

const light = async () => {
  mark_2();
};

describe('x', () => {
  mark_3();
});
""",
        {1: ("class Lamp", "method watts"), 2: ("function light",), 3: ()},
    ),
    "lamp.php": (
        """\
<?php

/** A lamp. */
class Lamp {
    public function light() {
        mark_1();
    }
}

function f() {
    mark_2();
}
""",
        {1: ("class Lamp", "method light"), 2: ("function f",)},
    ),
    "lamp.rb": (
        """\
module Harbour
  # A lamp.
  class Lamp < Ship
    def light(a)
      mark_1()
    end

    def self.make
      mark_2()
    end
  end
end
""",
        {1: ("module Harbour", "class Lamp", "method light"), 2: ("module Harbour", "class Lamp", "method make")},
    ),
    "lamp.rs": (
        """\
/// A lamp.
#[derive(Debug)]
struct Lamp {
    w: u32,
}

impl fmt::Display for Lamp {
    /// Show it.
    fn fmt(&self) -> fmt::Result {
        mark_1();
    }
}

mod tests {
    #[test]
    fn works() {
        mark_2();
    }
}
""",
        {1: ("impl fmt::Display for Lamp", "function fmt"), 2: ("module tests", "function works")},
    ),
    "lamp.ts": (
        """\
/** A lamp. */
@Component({a: 1})
export class Lamp {
  light(a: number): void {
    mark_1();
  }

  run = () => {
    mark_2();
  };
}

export function f<T>(x: T) {
  mark_3();
}
""",
        {1: ("class Lamp", "method light"), 2: ("class Lamp", "method run"), 3: ("function f",)},
    ),
    "lamp.tsx": (
        """\
export const Lamp = () => {
  mark_1();
  return <div>on</div>;
};
""",
        {1: ("function Lamp",)},
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_chunk_stands_below_the_classes_and_functions_that_contain_it(name: str) -> None:
    code, marks = FILES[name]
    document = parse(Path(name), code.encode())
    assert document.kind == "code"
    for mark, headings in marks.items():
        limit = 5  # so small that the body of a function is a chunk of its own
        chunks = split(document, tokenizer=WORDS, max_tokens=limit)
        (chunk,) = (chunk for chunk in chunks if f"mark_{mark}" in chunk.text)
        assert chunk.headings == headings


@pytest.mark.parametrize("name", FILES)
def test_comments_and_attributes_stay_with_what_they_are_about(name: str) -> None:
    document = parse(Path(name), FILES[name][0].encode())
    for heading in document.headings:
        line = document.text[heading.start :].split("\n")[0]
        above = document.text[: heading.start].rstrip("\n").rpartition("\n")[2].strip()
        assert line.strip()
        assert not above.startswith(("//", "/*", "#", "@", "[")), f"{above!r} belongs to {heading.title}"


@given(
    st.lists(st.integers(min_value=1, max_value=12), min_size=1, max_size=12), st.integers(min_value=45, max_value=70)
)
def test_a_function_that_fits_is_never_cut(sizes: list[int], limit: int) -> None:
    functions = []
    for number, size in enumerate(sizes):
        body = "\n\n".join(f"    let value_{line} = call({number});" for line in range(size))
        functions.append(f"/// Function {number}.\nfn function_{number}() {{\n{body}\n}}")
    document = parse(Path("a.rs"), "\n".join(functions).encode())
    chunks = split(document, tokenizer=WORDS, max_tokens=limit)
    fitting = [one for one in functions if count(one) <= limit]
    assert all(any(one in chunk.text for chunk in chunks) for one in fitting)
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(document.text.split())


def test_code_that_is_not_complete_is_read_as_far_as_it_goes() -> None:
    code = "fn good() {\n    a();\n}\n\nfn broken( {\n    ((;\n\n/// After.\nfn after() {\n    b();\n}\n"
    outline = outline_of(code, "rust")
    assert outline is not None
    assert "function good" in [one.title for one in outline.definitions]


def test_letters_beyond_ascii_move_no_boundary() -> None:
    code = "// Größe 🏮\nconst a = 'ä';\n\nfunction größe() {\n  return '🏮';\n}\n"
    outline = outline_of(code, "javascript")
    assert outline is not None
    (definition,) = outline.definitions
    assert (definition.title, code[definition.start :][:8]) == ("function größe", "function")


def test_without_a_grammar_there_is_no_outline() -> None:
    assert outline_of("fun main() {}", "kotlin") is None
    assert outline_of("x", None) is None
    assert outline_of("a();\n" * 500_000, "javascript") is None, "generated code is too long"


def test_each_grammar_belongs_to_a_language_that_is_read() -> None:
    from local_rag.reading.structure import _GRAMMARS

    assert set(_GRAMMARS) <= {one.language for one in FORMATS.values()}
    assert all(outline_of("a", language) for language in _GRAMMARS)


def test_without_the_grammars_code_is_cut_as_plain_text_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.go").write_text("package a\n\nfunc Leave() int {\n\treturn 7\n}\n")
    whole = read(tmp_path / "a.go")
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    for function in (lacks_grammar, outline_of):
        function.cache_clear()
    plain = read(tmp_path / "a.go")
    assert (whole.notes, [heading.title for heading in whole.headings]) == ((), ["function Leave"])
    assert plain.notes == ("cut as plain text, because the extra code, the grammars, is not installed",)
    assert plain.headings == ()
    assert plain.text == whole.text
    lacks_grammar.cache_clear()
    outline_of.cache_clear()
