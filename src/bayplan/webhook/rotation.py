"""
Certificates made, rotated and handed to the API server, so that no request is ever refused for them.

Before an authority ends, a second one is made and the API server is told to trust both. Only after a while, when every
API server has heard of it, does the door show a certificate of the new one; after another while the old one is
forgotten. Several replicas share what they show through a store, and each follows by itself.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec

from bayplan.errors import ClusterError
from bayplan.webhook import certificates
from bayplan.webhook.certificates import KeyPair


class Chain(msgspec.Struct, frozen=True):
    """The authorities that are trusted, oldest first, and what the door shows."""

    authorities: tuple[KeyPair, ...]
    serving: KeyPair

    @property
    def bundle(self) -> bytes:
        """What an API server is told to trust."""
        return b"".join(authority.certificate for authority in self.authorities)


class Store(Protocol):
    """Where replicas share the chain."""

    async def load(self) -> Chain | None:
        """The chain that is kept; None if there is none."""

    async def save(self, chain: Chain, instead_of: Chain | None) -> bool:
        """Keep a chain; false, and nothing is kept, if another one came first."""


class Memory:
    """A store for a single replica: its chain ends with it."""

    def __init__(self) -> None:
        self._chain: Chain | None = None

    async def load(self) -> Chain | None:
        return self._chain

    async def save(self, chain: Chain, instead_of: Chain | None) -> bool:
        if self._chain != instead_of:
            return False
        self._chain = chain
        return True


class Lifetimes(msgspec.Struct, frozen=True):
    """How long certificates last, and how long until everybody has heard of a new one."""

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=30)
    settling: timedelta = timedelta(minutes=5)


Inject = Callable[[bytes], Awaitable[None]]  # given a bundle, tells the API server to trust it


class Rotator:
    """Keeps the TLS context of a server supplied. `hosts` are the names that the API server knows it by."""

    def __init__(
        self,
        context: ssl.SSLContext,
        hosts: Sequence[str],
        store: Store,
        inject: Inject,
        lifetimes: Lifetimes = Lifetimes(),  # noqa: B008  # frozen
    ) -> None:
        self._context, self._hosts, self._store, self._inject = context, tuple(hosts), store, inject
        self._lifetimes = lifetimes
        self._shown: KeyPair | None = None

    async def run(self, complain: Callable[[ClusterError], None]) -> None:
        """
        Look after the certificates for good; the first look is the caller's, before the door opens.

        Where the cluster does not let it, that is complained of and tried again: there is plenty of time.
        """
        while True:
            # Often enough that nobody shows a certificate of an authority that the others have forgotten.
            await asyncio.sleep(self._lifetimes.settling.total_seconds() / 4)
            try:
                await self.look(datetime.now(UTC))
            except ClusterError as error:
                complain(error)

    async def look(self, now: datetime) -> None:
        """Do what the hour asks for: make, tell, show, forget."""
        chain = await self._current(now)
        # Told first and shown afterwards, never the other way round.
        await self._inject(chain.bundle)
        if chain.serving != self._shown:
            certificates.load(self._context, chain.serving)
            self._shown = chain.serving

    async def _current(self, now: datetime) -> Chain:
        while True:
            kept = await self._store.load()
            chain = renewed(kept, self._hosts, now, self._lifetimes)
            if chain == kept or await self._store.save(chain, kept):
                return chain


def renewed(kept: Chain | None, hosts: Sequence[str], now: datetime, lifetimes: Lifetimes) -> Chain:
    """The chain with what is due now: the same chain if nothing is."""
    authorities = [] if kept is None else [one for one in kept.authorities if one.read().not_valid_after_utc > now]
    if not authorities or authorities[-1].ages(now):
        authorities.append(certificates.authority(now, lifetimes.authority))
    settled = [one for one in authorities if now - one.made() >= lifetimes.settling]
    # Where none has been there for a while, there is nothing to wait for: the oldest is all that anybody knows.
    signer = settled[-1] if settled else authorities[0]
    if now - signer.made() >= 2 * lifetimes.settling:
        authorities = authorities[authorities.index(signer) :]
    if kept is None or _outdated(kept.serving, signer, hosts, now):
        return Chain(tuple(authorities), certificates.serving(signer, hosts, now, lifetimes.serving))
    return Chain(tuple(authorities), kept.serving)


def _outdated(shown: KeyPair, signer: KeyPair, hosts: Sequence[str], now: datetime) -> bool:
    return shown.ages(now) or certificates.names(shown) != set(hosts) or not certificates.signed(shown, signer)
