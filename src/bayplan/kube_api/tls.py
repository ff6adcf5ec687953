"""Whom we trust and what we show: TLS contexts out of certificate authorities and client certificates."""

from __future__ import annotations

import os
import pathlib
import ssl
import tempfile
from collections.abc import Callable

import msgspec

from bayplan.errors import InputError
from bayplan.kube_api.errors import CredentialError

_REREAD = 60.0  # seconds after which a file of authorities is looked at again


class ClientCertificate(msgspec.Struct, frozen=True):
    """A certificate and its key, both as PEM; `origin` says where they are from."""

    certificate: bytes
    key: bytes
    origin: str

    def __repr__(self) -> str:
        return f"ClientCertificate(origin={self.origin!r})"


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Which certificates we take for the server's. Without authorities of its own: those of the system."""

    authorities: bytes = b""
    authorities_file: str = ""
    origin: str = ""
    server_name: str = ""
    insecure: bool = False

    def pem(self) -> bytes:
        if self.authorities or not self.authorities_file:
            return self.authorities
        try:
            return pathlib.Path(self.authorities_file).read_bytes()
        except OSError as error:
            raise InputError(f"{self.origin}: cannot read {self.authorities_file}: {error.strerror}") from None


class Contexts:
    """The TLS context for the present certificates; a new one when either side's have changed."""

    def __init__(self, trust: Trust, clock: Callable[[], float]) -> None:
        self._trust, self._clock = trust, clock
        self._pem, self._read_at = trust.pem(), clock()
        self._made_for: tuple[bytes, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    def current(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        wanted = (self._present_pem(), certificate)
        if self._context is None or wanted != self._made_for:
            self._context, self._made_for = make_context(self._trust, *wanted), wanted
        return self._context

    def _present_pem(self) -> bytes:
        if self._trust.authorities_file and self._clock() - self._read_at >= _REREAD:
            self._read_at = self._clock()
            try:
                self._pem = self._trust.pem()
            except InputError:
                return self._pem  # what was good a minute ago beats a file that is just being replaced
        return self._pem


def make_context(trust: Trust, pem: bytes, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """A context that trusts the authorities in `pem` alone, or those of the system if there are none."""
    try:
        context = ssl.create_default_context(cadata=pem.decode("ascii") if pem else None)
    except (ssl.SSLError, UnicodeDecodeError):
        raise InputError(f"{trust.origin}: expected certificates in PEM form") from None
    # As Go does: an intermediate that is listed is trusted, and the sloppy authorities that cluster tools make will do.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load(context, certificate)
    return context


def _load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Hand the key to OpenSSL, which takes it from a file alone: one that only we can read, gone before we return."""
    handle, path = tempfile.mkstemp(prefix="bayplan-")  # created with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.certificate + b"\n" + certificate.key + b"\n")
        # Without an answer of ours OpenSSL would ask the terminal for the pass phrase.
        context.load_cert_chain(path, password=_no_pass_phrase)
    except (ssl.SSLError, ValueError):
        raise CredentialError(
            f"{certificate.origin}: the client certificate and its key cannot be used: expected both in PEM form, "
            "belonging together, the key without a pass phrase"
        ) from None
    finally:
        pathlib.Path(path).unlink()


def _no_pass_phrase() -> str:
    raise ValueError
