"""Keys and passwords are never read, whatever folder they lie in and whatever a mail attaches them to."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from local_rag.document_records import Skipped
from local_rag.errors import ReadError
from local_rag.reading.read import parse
from local_rag.reading.walk import Walk

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "name", ["id_rsa", "ID_ED25519", "server.pem", "a.ppk", "a.kdbx", "credentials", "secrets.yaml", "state.tfstate"]
)
def test_files_of_keys_are_skipped_by_their_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    [found] = Walk().files([tmp_path])
    assert isinstance(found, Skipped)
    assert found.reason == "a file of keys or passwords, which is never read"


@pytest.mark.parametrize("head", ["", "\ufeff", "Bag Attributes\n  friendlyName: x\nKey Attributes: none\n"])
@pytest.mark.parametrize("kind", ["OPENSSH ", "RSA ", "EC ", "ENCRYPTED ", "", "PGP "])
def test_private_keys_are_not_read_under_any_name(head: str, kind: str) -> None:
    key = head + KEY.replace("OPENSSH ", kind).replace("KEY-----", "KEY BLOCK-----" if kind == "PGP " else "KEY-----")
    for name in ("backup", "notes.txt", "a.md"):
        with pytest.raises(ReadError, match="a private key, which is never read"):
            parse(Path(name), key.encode())


def test_public_keys_and_texts_about_keys_are_read() -> None:
    guide = "# Keys\n\nMake one with `ssh-keygen`.\n\n" + "More about keys.\n" * 30 + KEY
    assert parse(Path("keys.md"), guide.encode()).title == "Keys"
    assert parse(Path("id_rsa.pub"), b"ssh-rsa AAAA ada@x.org\n").text


def test_an_attached_key_is_left_out_with_a_note() -> None:
    mail = EmailMessage()
    mail["Subject"] = "The key"
    mail.set_content("Attached.")
    mail.add_attachment(KEY, filename="backup.txt")
    mail.add_attachment(KEY, filename="id_rsa")
    document = parse(Path("a.eml"), mail.as_bytes())
    assert "b3BlbnNzaC1rZXk" not in document.text
    assert document.notes == (
        "the attachment backup.txt is left out: a private key, which is never read",
        "the attachment id_rsa is left out: a file of keys or passwords, which is never read",
    )
