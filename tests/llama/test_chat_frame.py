from pathlib import Path

import pytest

from local_rag.errors import ModelError
from local_rag.llama.models_in_use import open_vocabulary
from tests.support.tiny_models import save_model

TURN = "<{{ message.role }}>{{ message.content | trim }}</{{ message.role }}>"
END = "{% if add_generation_prompt %}<model>{% endif %}"
ALL = "{% for message in messages %}" + TURN + "{% endfor %}" + END
# As in Gemma 2 and in Mistral.
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + ALL
ALTERNATING = (
    "{% for message in messages %}{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate') }}{% endif %}" + TURN + "{% endfor %}" + END
)
DROPPED = "{% for message in messages %}{% if message.role == 'user' %}" + TURN + "{% endif %}{% endfor %}" + END
BROKEN_OFF = "{% for message in messages %}" + TURN + "{% if loop.last %}{% break %}{% endif %}{% endfor %}" + END
SYSTEM_FIRST, SYSTEM_IN_FRONT = "<system>Be brief.</system><user>", "<user>Be brief.\n\n"


def frame(template: str, folder: Path) -> tuple[str, str]:
    with open_vocabulary(save_model(folder / "m.gguf", "llama", template=template, add_bos=False)) as vocabulary:
        return vocabulary.chat_frame("Be brief.")


@pytest.mark.parametrize(
    ("template", "head"),
    [
        (ALL, SYSTEM_FIRST),
        (BROKEN_OFF, SYSTEM_FIRST),
        (NO_SYSTEM, SYSTEM_IN_FRONT),
        (ALTERNATING, SYSTEM_IN_FRONT),
        (DROPPED, SYSTEM_IN_FRONT),
    ],
)
def test_a_template_without_a_system_role_gets_the_system_text_in_front(
    template: str, head: str, tmp_path: Path
) -> None:
    assert frame(template, tmp_path) == (head, "</user><model>")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('Not like this') }}", "Not like this"),
        ("{{ 1 + 'a' }}", "unsupported operand"),
        ("{{ 1 // 0 }}", "zero"),
        ("{{ messages[0].content.nothing() }}", "nothing"),
        ("{{ nothing() }}", "'nothing' is undefined"),
        ("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", "recursion"),
        ("{% for message in messages %}", "endfor"),
        ("{{ messages[0].role }}", "leaves out"),
    ],
)
def test_a_template_that_fails_is_one_sentence(template: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"^The chat template of .*m\.gguf cannot be used \(.*{reason}.*\); choose"):
        frame(template, tmp_path)
