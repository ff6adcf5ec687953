"""
Certificates of our own: authorities that an API server is told to trust, and the one that the door shows.

Knows the hour it is told, and nothing of where certificates are kept.
"""

from __future__ import annotations

import asyncio
import ipaddress
import pathlib
import secrets
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bayplan.errors import ClusterError, Fault, InputError

_PrivateKey = ec.EllipticCurvePrivateKey
_SKEW = timedelta(hours=1)  # clocks differ: what is made now must not be of the future elsewhere


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def read(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)

    def created_at(self) -> datetime:
        """When it was made."""
        return self.read().not_valid_before_utc + _SKEW

    def is_due(self, now: datetime) -> bool:
        """Whether it is time for another: two thirds of its life are over."""
        created_at, ends = self.created_at(), self.read().not_valid_after_utc
        return now >= created_at + (ends - created_at) * 2 / 3


def create_authority(now: datetime, lifetime: timedelta) -> KeyPair:
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


def create_serving_pair(by: KeyPair, hosts: Sequence[str], now: datetime, lifetime: timedelta) -> KeyPair:
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


def check_pair(pair: KeyPair) -> None:
    """Raises ValueError for what is no certificate with its key."""
    pair.read()
    serialization.load_pem_private_key(pair.key, None)


def is_signed_by(pair: KeyPair, by: KeyPair) -> bool:
    """Whether one signed the other."""
    try:
        pair.read().verify_directly_issued_by(by.read())
    except (ValueError, InvalidSignature):
        return False
    return True


def subject_names(pair: KeyPair) -> set[str]:
    """The names and addresses that a certificate is for."""
    found = pair.read().extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def load_into(context: ssl.SSLContext, pair: KeyPair) -> None:
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
    subject: x509.Name, issuer: x509.Name, key: _PrivateKey, now: datetime, lifetime: timedelta
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


def _pair(certificate: x509.Certificate, key: _PrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private)


# RF merged from webhook.key_files: Certificates that somebody else keeps in files, read again whenever the files
# change.


FILE_CHECK_SECONDS = 10.0  # seconds between looks


class CertificateFiles:
    """Keeps the TLS context of a server supplied from a file with the certificate chain and one with the key."""

    def __init__(self, context: ssl.SSLContext, certificate: str, key: str) -> None:
        self._context = context
        self._certificate, self._key = pathlib.Path(certificate), pathlib.Path(key)
        self._shown: KeyPair | None = None

    async def run(self, on_error: Callable[[InputError], None], every: float = FILE_CHECK_SECONDS) -> None:
        """Look at the files for good. Files that cannot be used are complained of, and what was shown stays."""
        while True:
            await asyncio.sleep(every)
            try:
                self.reload()
            except InputError as error:
                on_error(error)

    def reload(self) -> bool:
        """Show what the files hold; whether that is new. Raises InputError if it cannot be shown."""
        found = KeyPair(_content(self._certificate), _content(self._key))
        if found == self._shown:
            return False
        try:
            # On a context of its own first: half a pair must not spoil the one in use.
            load_into(server_context(), found)
        except ssl.SSLError as error:
            message = f"no certificate chain with its key in {self._key}: {error.reason or error}"
            raise InputError(Fault(message, file=str(self._certificate))) from None
        load_into(self._context, found)
        self._shown = found
        return True


def _content(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=str(path))) from None


# RF merged from webhook.rotation: Certificates made, rotated and handed to the API server, so that no request is ever
# refused for them. Before an authority ends, a second one is made and the API server is told to trust both. Only
# after a while, when every API server has heard of it, does the door show a certificate of the new one; after another
# while the old one is forgotten. Several replicas share what they show through a store, and each follows by itself.


class CertificateChain(msgspec.Struct, frozen=True):
    """The authorities that are trusted, oldest first, and what the door shows."""

    authorities: tuple[KeyPair, ...]
    serving: KeyPair

    @property
    def bundle(self) -> bytes:
        """What an API server is told to trust."""
        return b"".join(authority.certificate for authority in self.authorities)


class CertificateStore(Protocol):
    """Where replicas share the chain."""

    async def load(self) -> CertificateChain | None:
        """The chain that is kept; None if there is none."""

    async def save(self, chain: CertificateChain, instead_of: CertificateChain | None) -> bool:
        """Keep a chain; false, and nothing is kept, if another one came first."""


class Memory:
    """A store for a single replica: its chain ends with it."""

    def __init__(self) -> None:
        self._chain: CertificateChain | None = None

    async def load(self) -> CertificateChain | None:
        return self._chain

    async def save(self, chain: CertificateChain, instead_of: CertificateChain | None) -> bool:
        if self._chain != instead_of:
            return False
        self._chain = chain
        return True


class CertificateLifetimes(msgspec.Struct, frozen=True):
    """How long certificates last, and how long until everybody has heard of a new one."""

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=30)
    settling: timedelta = timedelta(minutes=5)


InjectBundle = Callable[[bytes], Awaitable[None]]  # given a bundle, tells the API server to trust it


class CertificateRotator:
    """Keeps the TLS context of a server supplied. `hosts` are the names that the API server knows it by."""

    def __init__(
        self,
        context: ssl.SSLContext,
        hosts: Sequence[str],
        store: CertificateStore,
        inject: InjectBundle,
        lifetimes: CertificateLifetimes = CertificateLifetimes(),  # noqa: B008  # frozen
    ) -> None:
        self._context, self._hosts, self._store, self._inject = context, tuple(hosts), store, inject
        self._lifetimes = lifetimes
        self._shown: KeyPair | None = None

    async def run(self, on_error: Callable[[ClusterError], None]) -> None:
        """
        Look after the certificates for good; the first look is the caller's, before the door opens.

        Where the cluster does not let it, that is complained of and tried again: there is plenty of time.
        """
        while True:
            # Often enough that nobody shows a certificate of an authority that the others have forgotten.
            await asyncio.sleep(self._lifetimes.settling.total_seconds() / 4)
            try:
                await self.rotate(datetime.now(UTC))
            except ClusterError as error:
                on_error(error)

    async def rotate(self, now: datetime) -> None:
        """Do what the hour asks for: make, tell, show, forget."""
        chain = await self._current(now)
        # Told first and shown afterwards, never the other way round.
        await self._inject(chain.bundle)
        if chain.serving != self._shown:
            load_into(self._context, chain.serving)
            self._shown = chain.serving

    async def _current(self, now: datetime) -> CertificateChain:
        while True:
            kept = await self._store.load()
            chain = renewed(kept, self._hosts, now, self._lifetimes)
            if chain == kept or await self._store.save(chain, kept):
                return chain


def renewed(
    kept: CertificateChain | None, hosts: Sequence[str], now: datetime, lifetimes: CertificateLifetimes
) -> CertificateChain:
    """The chain with what is due now: the same chain if nothing is."""
    authorities = [] if kept is None else [one for one in kept.authorities if one.read().not_valid_after_utc > now]
    if not authorities or authorities[-1].is_due(now):
        authorities.append(create_authority(now, lifetimes.authority))
    settled = [one for one in authorities if now - one.created_at() >= lifetimes.settling]
    # Where none has been there for a while, there is nothing to wait for: the oldest is all that anybody knows.
    signer = settled[-1] if settled else authorities[0]
    if now - signer.created_at() >= 2 * lifetimes.settling:
        authorities = authorities[authorities.index(signer) :]
    if kept is None or _outdated(kept.serving, signer, hosts, now):
        return CertificateChain(tuple(authorities), create_serving_pair(signer, hosts, now, lifetimes.serving))
    return CertificateChain(tuple(authorities), kept.serving)


def _outdated(shown: KeyPair, signer: KeyPair, hosts: Sequence[str], now: datetime) -> bool:
    return shown.is_due(now) or subject_names(shown) != set(hosts) or not is_signed_by(shown, signer)
