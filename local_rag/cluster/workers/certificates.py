"""The certificates of a cluster: an authority that all machines share, and one certificate of each machine's own.

Ray asks every machine that connects for a certificate of the authority. Whoever holds the authority's key can join, as
whoever holds the token can; so both are copied together, and each machine makes its own certificate from them.
"""

import ipaddress
import os
import socket
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from local_rag.errors import ClusterError
from local_rag.files import needs_package, write_whole

_HOUR, _YEARS = timedelta(hours=1), timedelta(days=3650)  # clocks of machines differ a little
CONNECT_SECONDS = 5.0


class Certificates:
    """The files of the authority in one folder, and those of this machine in another."""

    def __init__(self, authority: Path, own: Path) -> None:
        self.authority = authority
        self.ca, self.ca_key = authority / "ca.crt", authority / "ca.key"
        self.certificate, self.key = own / "node.crt", own / "node.key"

    def make_authority(self) -> None:
        """Create an authority if there is none."""
        if self.ca.exists():
            return
        x509, key = _x509(), _new_key()
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "local-rag cluster")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = _builder(name, name, key).add_extension(x509.BasicConstraints(True, 0), critical=True)
        self.authority.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_key(self.ca_key, key)
        _write_certificate(self.ca, builder.add_extension(usage, critical=True), key)

    def certify(self, hosts: Iterable[str], days: tuple[datetime, datetime] | None = None) -> None:
        """Make a certificate for this machine under its names and addresses; raise ClusterError without authority."""
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        x509, key = _x509(), _new_key()
        self._require(self.ca_key)
        self._require(self.ca)
        issuer = x509.load_pem_x509_certificate(self.ca.read_bytes()).subject
        signing = load_pem_private_key(self.ca_key.read_bytes(), None)
        names = [_name(x509, host) for host in sorted({*hosts, "127.0.0.1", "localhost"})]
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "machine of a local-rag cluster")])
        purposes = [x509.ExtendedKeyUsageOID.SERVER_AUTH, x509.ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            _builder(subject, issuer, key, days)
            .add_extension(x509.BasicConstraints(False, None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        _write_key(self.key, key)
        _write_certificate(self.certificate, builder, signing)

    def environment(self) -> dict[str, str]:
        """Return the environment variables that let Ray use them; raise ClusterError if they are missing or expired."""
        for file in (self.certificate, self.key, self.ca):
            if not file.is_file():
                raise ClusterError(
                    f"This machine has no certificate in {file}; join the cluster with `local-rag cluster start "
                    "--join`."
                )
        self._require(self.key)
        ends = _x509().load_pem_x509_certificate(self.certificate.read_bytes()).not_valid_after_utc
        if ends < datetime.now(UTC):
            raise ClusterError(
                f"The certificate {self.certificate} has expired on {ends:%Y-%m-%d}; run `local-rag cluster stop` and "
                "`local-rag cluster start` on this machine again, which makes another one."
            )
        return {
            "RAY_USE_TLS": "1",
            "RAY_TLS_SERVER_CERT": str(self.certificate),
            "RAY_TLS_SERVER_KEY": str(self.key),
            "RAY_TLS_CA_CERT": str(self.ca),
        }

    def _require(self, file: Path) -> None:
        if not file.is_file():
            raise ClusterError(
                f"There is no {file}; copy the folder {self.authority} from the head of the cluster, where `local-rag "
                "cluster start` creates it."
            )
        if file.suffix == ".key" and file.stat().st_mode & 0o077:
            raise ClusterError(f"Other users may read the private key {file}; run `chmod 600 {file}`.")

    def require_welcome(self, host: str, port: int) -> None:
        """Raise ClusterError if this machine and the one at the address do not trust each other: Ray says no reason."""
        import ssl  # not needed where no cluster is

        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.certificate, self.key)
        context.set_alpn_protocols(["h2"])
        try:
            with (
                socket.create_connection((host, port), timeout=CONNECT_SECONDS) as plain,
                context.wrap_socket(plain, server_hostname=host) as encrypted,
            ):
                # Whether it takes the certificate of this machine, the other side says after the handshake.
                welcome = encrypted.recv(1)
        except ssl.SSLError as error:
            said = str(error)
            meaning = next((meaning for words, meaning in _MEANINGS.items() if words in said), said)
            raise ClusterError(f"The connection to {host}:{port} is refused: {meaning}.") from None
        except OSError:
            welcome = b""
        if not welcome:
            raise ClusterError(f"What listens at {host}:{port} does not answer as a cluster; see Ray's log there.")


# What OpenSSL says, and what it means here.
_AGAIN = "copy the token and the folder of the authority from the head once more"
_MEANINGS = {
    "CERTIFICATE_EXPIRED": "the certificate of this machine has expired; start Ray here again with `local-rag cluster "
    "start`",
    "has expired": "the certificate of the head has expired; start the cluster there again",
    "not yet valid": "the certificate of the head is not valid yet; compare the clocks of both machines",
    "mismatch": "its certificate names another host; use the address that the head was started with",
    "doesn't match": "its certificate names another host; use the address that the head was started with",
    "CERTIFICATE_VERIFY_FAILED": f"the head has a certificate of another authority; {_AGAIN}",
    "ALERT": f"the head does not take the certificate of this machine; {_AGAIN}",
    "WRONG_VERSION_NUMBER": "no encrypted connection is offered there; correct the setting `cluster.address`",
}


def _x509() -> Any:
    try:
        from cryptography import x509
    except ModuleNotFoundError as error:
        raise ClusterError(needs_package("A cluster", error.name, "cluster")) from None
    return x509


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _builder(subject: Any, issuer: Any, key: Any, days: tuple[datetime, datetime] | None = None) -> Any:
    x509, now = _x509(), datetime.now(UTC)
    begins, ends = days or (now - _HOUR, now + _YEARS)
    return x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), begins, ends)


def _name(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: Any) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _write_certificate(path: Path, builder: Any, signing: Any) -> None:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding

    write_whole(path, builder.sign(signing, SHA256()).public_bytes(Encoding.PEM))
