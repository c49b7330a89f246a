"""The certificates of a cluster: whom a machine trusts, and one sentence for each that it does not."""

import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local_rag.cluster.workers.certificates import Certificates
from local_rag.errors import ClusterError

pytest.importorskip("cryptography", reason="the extra [cluster] is not installed")
OLD = datetime.now(UTC) - timedelta(days=400), datetime.now(UTC) - timedelta(days=1)


def machine(folder: Path, name: str, authority: str = "authority", **how: tuple[datetime, datetime]) -> Certificates:
    """Return the certificates of a machine that shares an authority with the others in the folder."""
    (folder / name).mkdir()
    own = Certificates(folder / authority, folder / name)
    own.make_authority()
    own.certify(["10.0.0.5", "head.internal"], **how)
    return own


@pytest.fixture
def serve() -> Iterator[Callable[[Certificates], int]]:
    with ExitStack() as stack:
        yield lambda own: stack.enter_context(serving(own))


@contextmanager
def serving(own: Certificates) -> Iterator[int]:
    """Listen as Ray does: whoever connects must show a certificate, and the first word is the server's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    context.load_verify_locations(own.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    plain, _ = server.accept()
                    with suppress(OSError), context.wrap_socket(plain, server_side=True) as encrypted:
                        encrypted.sendall(b"settings")
                        encrypted.recv(1)

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_keys_are_private_and_the_authority_stays(tmp_path: Path) -> None:
    own = machine(tmp_path, "a")
    for key in (own.ca_key, own.key):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = own.ca.read_bytes(), own.certificate.read_bytes()
    own.make_authority()
    own.certify(["10.0.0.5"])
    assert own.ca.read_bytes() == before[0]
    assert own.certificate.read_bytes() != before[1], "each start makes another one"


def test_a_certificate_names_the_machine_and_nothing_else(tmp_path: Path) -> None:
    from cryptography import x509

    read = x509.load_pem_x509_certificate(machine(tmp_path, "a").certificate.read_bytes())
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.5", "127.0.0.1"]
    assert names.get_values_for_type(x509.DNSName) == ["head.internal", "localhost"]
    assert not read.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_machines_of_one_authority_trust_each_other(tmp_path: Path, serve: Callable[[Certificates], int]) -> None:
    machine(tmp_path, "b").require_welcome("127.0.0.1", serve(machine(tmp_path, "a")))


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        ({"authority": "other"}, {}, "the head has a certificate of another authority"),
        ({"days": OLD}, {}, "the certificate of this machine has expired"),
        ({}, {"days": OLD}, "the certificate of the head has expired"),
    ],
)
def test_who_is_not_trusted_is_refused_in_one_sentence(
    tmp_path: Path, serve: Callable[[Certificates], int], here: dict[str, str], there: dict[str, str], said: str
) -> None:
    port = serve(machine(tmp_path, "head", **there))  # type: ignore[arg-type]
    with pytest.raises(ClusterError, match=said) as raised:
        machine(tmp_path, "worker", **here).require_welcome("127.0.0.1", port)  # type: ignore[arg-type]
    assert len(str(raised.value).splitlines()) == 1


def test_a_certificate_that_another_authority_signed_is_refused_by_the_head(
    tmp_path: Path, serve: Callable[[Certificates], int]
) -> None:
    head, stranger = machine(tmp_path, "head"), machine(tmp_path, "stranger", "other")
    stranger.ca.write_bytes(head.ca.read_bytes())
    with pytest.raises(ClusterError, match="the head does not take the certificate of this machine"):
        stranger.require_welcome("127.0.0.1", serve(head))


def test_a_port_without_encryption_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            plain, _ = server.accept()
            with plain:
                plain.recv(1000)
                plain.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(ClusterError, match="no encrypted connection is offered there"):
            machine(tmp_path, "a").require_welcome("127.0.0.1", server.getsockname()[1])


def test_what_is_missing_open_to_others_or_expired_is_one_sentence(tmp_path: Path) -> None:
    own = machine(tmp_path, "a", days=OLD)
    with pytest.raises(ClusterError, match=r"has expired on .* which makes another one"):
        own.environment()
    own.certify([])
    assert own.environment()["RAY_TLS_CA_CERT"] == str(own.ca)
    own.key.chmod(0o640)
    with pytest.raises(ClusterError, match=f"chmod 600 {own.key}"):
        own.environment()
    own.key.unlink()
    with pytest.raises(ClusterError, match="This machine has no certificate"):
        own.environment()
    own.ca_key.chmod(0o604)
    with pytest.raises(ClusterError, match=f"chmod 600 {own.ca_key}"):
        own.certify([])
    own.ca_key.unlink()
    with pytest.raises(ClusterError, match=r"copy the folder .*authority from the head"):
        own.certify([])
