"""
Certificates of our own: authorities that an API server is told to trust, and the one that the door shows.

Knows the hour it is told, and nothing of where certificates are kept.
"""

from __future__ import annotations

import ipaddress
import pathlib
import secrets
import ssl
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey
_SKEW = timedelta(hours=1)  # clocks differ: what is made now must not be of the future elsewhere


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def read(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)

    def made(self) -> datetime:
        """When it was made."""
        return self.read().not_valid_before_utc + _SKEW

    def ages(self, now: datetime) -> bool:
        """Whether it is time for another: two thirds of its life are over."""
        made, ends = self.made(), self.read().not_valid_after_utc
        return now >= made + (ends - made) * 2 / 3


def authority(now: datetime, lifetime: timedelta) -> KeyPair:
    """A new authority that may sign nothing but certificates of servers."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"bayplan-webhook-ca-{secrets.token_hex(8)}")])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=False, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = (
        _builder(name, name, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def serving(by: KeyPair, hosts: Sequence[str], now: datetime, lifetime: timedelta) -> KeyPair:
    """A new certificate for a server that goes by these names or addresses; it never outlives its authority."""
    signer, signing_key = by.read(), serialization.load_pem_private_key(by.key, None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    # The common name holds 64 characters and nobody reads it; what counts are the alternative names.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    lifetime = min(lifetime, signer.not_valid_after_utc - now)
    builder = (
        _builder(name, signer.subject, key, now, lifetime)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    return _pair(builder.sign(signing_key, hashes.SHA256()), key)


def check(pair: KeyPair) -> None:
    """Raises ValueError for what is no certificate with its key."""
    pair.read()
    serialization.load_pem_private_key(pair.key, None)


def signed(pair: KeyPair, by: KeyPair) -> bool:
    """Whether one signed the other."""
    try:
        pair.read().verify_directly_issued_by(by.read())
    except (ValueError, InvalidSignature):
        return False
    return True


def names(pair: KeyPair) -> set[str]:
    """The names and addresses that a certificate is for."""
    found = pair.read().extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def load(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Show this certificate from the next connection on; those that stand are not touched."""
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:  # Python takes certificates from files only
        certificate, key = pathlib.Path(folder, "tls.crt"), pathlib.Path(folder, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        # With a passphrase that is wrong, lest OpenSSL asks for one on the terminal and everything waits.
        context.load_cert_chain(certificate, key, password=lambda: "")


def server_context() -> ssl.SSLContext:
    """TLS for a server that has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + lifetime)
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: Key) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private)
