"""Certificates that somebody else keeps in files, read again whenever the files change."""

from __future__ import annotations

import asyncio
import pathlib
import ssl
from collections.abc import Callable

from bayplan.errors import Fault, InputError
from bayplan.webhook import certificates
from bayplan.webhook.certificates import KeyPair

EVERY = 10.0  # seconds between looks


class KeyFiles:
    """Keeps the TLS context of a server supplied from a file with the certificate chain and one with the key."""

    def __init__(self, context: ssl.SSLContext, certificate: str, key: str) -> None:
        self._context = context
        self._certificate, self._key = pathlib.Path(certificate), pathlib.Path(key)
        self._shown: KeyPair | None = None

    async def run(self, complain: Callable[[InputError], None], every: float = EVERY) -> None:
        """Look at the files for good. Files that cannot be used are complained of, and what was shown stays."""
        while True:
            await asyncio.sleep(every)
            try:
                self.look()
            except InputError as error:
                complain(error)

    def look(self) -> bool:
        """Show what the files hold; whether that is new. Raises InputError if it cannot be shown."""
        found = KeyPair(_content(self._certificate), _content(self._key))
        if found == self._shown:
            return False
        try:
            # On a context of its own first: half a pair must not spoil the one in use.
            certificates.load(certificates.server_context(), found)
        except ssl.SSLError as error:
            message = f"no certificate chain with its key in {self._key}: {error.reason or error}"
            raise InputError(Fault(message, file=str(self._certificate))) from None
        certificates.load(self._context, found)
        self._shown = found
        return True


def _content(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=str(path))) from None
