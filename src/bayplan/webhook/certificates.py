"""
The serving certificates of the webhook: read from files, or created and rotated by Bayplan.

Rotation never causes a rejected request. Before an authority expires, a second one is created and the API server is
configured to trust both. When every API server has had time to see it, the webhook serves a certificate of the new
authority; after the same time again the old authority is dropped. The secret path segments rotate likewise: a new one
comes every hour, and with each serving certificate. It is accepted at once, is used by API servers when every replica
accepts it, and replaces the old one after the same time again. Replicas share the chain through a store.
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
from bayplan.webhook import secret_paths
from bayplan.webhook.secret_paths import AcceptedPaths, PathSegment

FILE_CHECK_SECONDS = 10.0
_PrivateKey = ec.EllipticCurvePrivateKey
_CLOCK_SKEW = timedelta(hours=1)  # a new certificate must already be valid by the clocks of other machines


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def read(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)

    def created_at(self) -> datetime:
        return self.read().not_valid_before_utc + _CLOCK_SKEW

    def is_due(self, now: datetime) -> bool:
        """Whether the certificate is due for renewal: two thirds of its lifetime have passed."""
        created, expires = self.created_at(), self.read().not_valid_after_utc
        return now >= created + (expires - created) * 2 / 3


# Creating and loading certificates


def create_authority(now: datetime, lifetime: timedelta) -> KeyPair:
    """Create an authority that may sign server certificates only."""
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
    return _key_pair(builder.sign(key, hashes.SHA256()), key)


def create_serving_pair(signer: KeyPair, hosts: Sequence[str], now: datetime, lifetime: timedelta) -> KeyPair:
    """Create a server certificate for these names or addresses; it never outlives its authority."""
    authority, signing_key = signer.read(), serialization.load_pem_private_key(signer.key, None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    # The common name is limited to 64 characters and is not checked; clients check the alternative names.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    lifetime = min(lifetime, authority.not_valid_after_utc - now)
    builder = (
        _builder(name, authority.subject, key, now, lifetime)
        .add_extension(x509.SubjectAlternativeName([_alternative_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    return _key_pair(builder.sign(signing_key, hashes.SHA256()), key)


def check_pair(pair: KeyPair) -> None:
    """Raise ValueError unless both a certificate and a private key can be read."""
    pair.read()
    serialization.load_pem_private_key(pair.key, None)


def is_signed_by(pair: KeyPair, signer: KeyPair) -> bool:
    try:
        pair.read().verify_directly_issued_by(signer.read())
    except (ValueError, InvalidSignature):
        return False
    return True


def subject_names(pair: KeyPair) -> set[str]:
    """Return the names and addresses that a certificate is valid for."""
    found = pair.read().extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


class ServerTls:
    """
    The TLS context for new connections. Every certificate gets a context of its own, so a thread may read it any time.

    With `client_authorities` (PEM), only clients with a certificate of one of them are served.
    """

    def __init__(self, client_authorities: str = "") -> None:
        self._client_authorities = client_authorities
        self.context: ssl.SSLContext | None = None  # none before the first certificate is loaded
        self.expires: datetime | None = None  # when the served certificate does

    def load(self, pair: KeyPair) -> None:
        """Serve this certificate on new connections; ssl.SSLError, and no change, if it is unusable."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self._client_authorities:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self._client_authorities)
        with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:  # the ssl module reads certificates from files
            certificate, key = pathlib.Path(folder, "tls.crt"), pathlib.Path(folder, "tls.key")
            certificate.write_bytes(pair.certificate)
            key.touch(mode=0o600)
            key.write_bytes(pair.key)
            # With a wrong passphrase: without any, OpenSSL would prompt for one on the terminal.
            context.load_cert_chain(certificate, key, password=lambda: "")
        self.context, self.expires = context, pair.read().not_valid_after_utc


def read_authorities(path: str) -> str:
    """Return the certificates of a PEM file; InputError if there is none."""
    try:
        text = _content(pathlib.Path(path)).decode()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise InputError(Fault("expected certificates in PEM", file=path)) from None
    return text


def _builder(
    subject: x509.Name, issuer: x509.Name, key: _PrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pair(certificate: x509.Certificate, key: _PrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private)


# Certificates from files


class CertificateFiles:
    """Loads a certificate chain and its key from two files, again whenever the files change."""

    def __init__(self, tls: ServerTls, certificate: str, key: str) -> None:
        self._tls = tls
        self._certificate, self._key = pathlib.Path(certificate), pathlib.Path(key)
        self._loaded: KeyPair | None = None

    async def run(self, on_error: Callable[[InputError], None], every: float = FILE_CHECK_SECONDS) -> None:
        """Check the files until cancelled. Unusable files are reported, and the loaded certificate stays."""
        while True:
            await asyncio.sleep(every)
            try:
                self.reload()
            except InputError as error:
                on_error(error)

    def reload(self) -> bool:
        """Load the files. Return whether they have changed; raise InputError if they are unusable."""
        found = KeyPair(_content(self._certificate), _content(self._key))
        if found == self._loaded:
            return False
        try:
            self._tls.load(found)
        except ssl.SSLError as error:
            message = f"no certificate chain with its key in {self._key}: {error.reason or error}"
            raise InputError(Fault(message, file=str(self._certificate))) from None
        self._loaded = found
        return True


def _content(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=str(path))) from None


# Certificates that Bayplan rotates


class CertificateChain(msgspec.Struct, frozen=True):
    """The trusted authorities and the accepted path segments, oldest first, and the serving certificate."""

    authorities: tuple[KeyPair, ...]
    serving: KeyPair
    segments: tuple[PathSegment, ...] = ()

    @property
    def bundle(self) -> bytes:
        """The CA bundle for the API server."""
        return b"".join(authority.certificate for authority in self.authorities)


class CertificateStore(Protocol):
    """Where replicas share the chain."""

    async def load(self) -> CertificateChain | None:
        """Return the stored chain; None if there is none."""

    async def save(self, chain: CertificateChain, instead_of: CertificateChain | None) -> bool:
        """Store a chain. Return false, and store nothing, if the stored chain is no longer `instead_of`."""


class CertificateLifetimes(msgspec.Struct, frozen=True):
    """
    How long certificates are valid; `settling` is the time in which every API server sees a new authority.

    A path `segment` is short-lived: with failurePolicy Fail, an API server shows the path of a call that failed on the
    way, such as a refused connection, to the user whose request it was for.
    """

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=30)
    segment: timedelta = timedelta(hours=1)
    settling: timedelta = timedelta(minutes=5)


# Makes API servers trust a CA bundle and call the webhook under a path segment.
Inject = Callable[[bytes, str], Awaitable[None]]


class CertificateRotator:
    """
    Keeps a current certificate in `tls` and current segments in `paths`, both None where another process serves.

    `hosts` are the names by which API servers reach the webhook.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        store: CertificateStore,
        inject: Inject,
        *,
        tls: ServerTls | None = None,
        paths: AcceptedPaths | None = None,
        lifetimes: CertificateLifetimes = CertificateLifetimes(),  # noqa: B008  # frozen
    ) -> None:
        self._hosts, self._store, self._inject = tuple(hosts), store, inject
        self._tls, self._paths, self._lifetimes = tls, paths, lifetimes
        self._loaded: KeyPair | None = None

    async def run(self, on_error: Callable[[ClusterError], None]) -> None:
        """
        Rotate certificates until cancelled. The caller rotates once before the server starts.

        Errors of the cluster are reported and the rotation is retried: renewal starts long before the expiry.
        """
        while True:
            # Often enough that no replica serves a certificate of an authority that the others have dropped.
            await asyncio.sleep(self._lifetimes.settling.total_seconds() / 4)
            try:
                await self.rotate(datetime.now(UTC))
            except ClusterError as error:
                on_error(error)

    async def rotate(self, now: datetime) -> None:
        """Do what is due now: create, inject, serve, drop."""
        chain = await self._current_chain(now)
        if self._paths is not None:
            self._paths.accept(one.value for one in chain.segments)
        # The API server must trust an authority before a certificate of it is served.
        await self._inject(chain.bundle, secret_paths.in_use(chain.segments).value)
        if chain.serving != self._loaded:
            if self._tls is not None:
                self._tls.load(chain.serving)
            self._loaded = chain.serving

    async def _current_chain(self, now: datetime) -> CertificateChain:
        while True:
            stored = await self._store.load()
            chain = renewed(stored, self._hosts, now, self._lifetimes)
            if chain == stored or await self._store.save(chain, stored):
                return chain


def renewed(
    stored: CertificateChain | None, hosts: Sequence[str], now: datetime, lifetimes: CertificateLifetimes
) -> CertificateChain:
    """Return the chain with everything renewed that is due; an equal chain if nothing is."""
    authorities = [] if stored is None else [one for one in stored.authorities if one.read().not_valid_after_utc > now]
    if not authorities or authorities[-1].is_due(now):
        authorities.append(create_authority(now, lifetimes.authority))
    settled = [one for one in authorities if now - one.created_at() >= lifetimes.settling]
    # If none has settled there is nothing to wait for: the oldest is the only one that API servers may know.
    signer = settled[-1] if settled else authorities[0]
    if now - signer.created_at() >= 2 * lifetimes.settling:
        authorities = authorities[authorities.index(signer) :]
    segments = [] if stored is None else list(stored.segments)
    if stored is None or _is_outdated(stored.serving, signer, hosts, now):
        serving = create_serving_pair(signer, hosts, now, lifetimes.serving)
        segments.append(secret_paths.create_segment(now))
    else:
        serving = stored.serving
        if not segments or now - segments[-1].created >= lifetimes.segment:
            segments.append(secret_paths.create_segment(now))
    rotated = secret_paths.rotated_segments(segments, now, lifetimes.settling)
    return CertificateChain(tuple(authorities), serving, rotated)


def _is_outdated(serving: KeyPair, signer: KeyPair, hosts: Sequence[str], now: datetime) -> bool:
    return serving.is_due(now) or subject_names(serving) != set(hosts) or not is_signed_by(serving, signer)
