"""A certificate authority for tests. It writes its certificates as PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate."""

    certificate: Path
    key: Path
    both: Path  #: certificate and key in one file


class Authority:
    """A certificate authority. `certificate` is the file of its own certificate, which clients and servers trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("test authority")
        self.certificate = folder / "ca.pem"
        made = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def pair(self, name: str, *, address: str = "", password: str = "") -> Pair:
        """Issue a certificate and return its files.

        `address` is an IP address for which it is valid; `password` protects the key.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]) if address else None
        certificate = self._signed(_name(name), key, alternative).public_bytes(serialization.Encoding.PEM)
        locked = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        pair = Pair(*(self._folder / f"{name}-{part}.pem" for part in ("cert", "key", "both")))
        pair.certificate.write_bytes(certificate)
        pair.key.write_bytes(secret)
        pair.both.write_bytes(certificate + secret)
        return pair

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType | None
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
        )
        if extension is not None:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
