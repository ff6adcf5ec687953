"""
How far hard anti-affinity may reach, so that nobody uses it as a weapon against everybody else's pods.

A pod that arrives first and refuses all pods of all namespaces keeps a whole domain for itself. The seed's rule, which
is the default, lets that be done with a node and with nothing wider. Kubernetes never had it: docs/differences.md.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.model import terms
from bayplan.model.semantics import Semantics
from bayplan.model.terms import NO_TERMS, AffinityTerms, PodTerm, ResolvedTerm, resolve
from bayplan.validating import causes, go_text
from bayplan.validating.causes import Cause

NOTHING, ALL_NAMESPACES, WIDER_THAN_NODE, EVERYTHING = "none", "all-namespaces", "wider-than-node", "all"
_ONLY_THE_EXEMPT = "only users, groups and namespaces that are exempt may use hard anti-affinity"


class Requester(msgspec.Struct, frozen=True):
    """
    Who wants the object. `for_template`: a controller of Kubernetes that carries out a template somebody else wrote.

    Nobody in particular, as in a file, is exempt from nothing.
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    for_template: bool = False


class Exempt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who has the capability; nobody by default."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """
    `restrict` is what only the exempt may do: hard anti-affinity across all namespaces over anything wider than a node,
    hard anti-affinity over anything wider than a node, or all hard anti-affinity.

    `node_topology_keys` are the keys that tell single nodes apart. `tolerate_namespaces` are what the mutating webhook
    adds to hard anti-affinity terms.
    """

    restrict: Literal["none", "all-namespaces", "wider-than-node", "all"] = "all-namespaces"
    node_topology_keys: tuple[str, ...] = (terms.HOSTNAME,)
    exempt: Exempt = Exempt()
    tolerate_namespaces: tuple[str, ...] = ("kube-system",)

    def exempts(self, requester: Requester, namespace: str) -> bool:
        """Whether the rule does not hold for an object of this namespace that the requester wants."""
        exempt = self.exempt
        if namespace in exempt.namespaces or requester.user in exempt.users:
            return True
        # Where people are told apart, the template was judged by its author; controllers only carry it out.
        told_apart = bool(exempt.users or exempt.groups)
        return (told_apart and requester.for_template) or not set(exempt.groups).isdisjoint(requester.groups)


def causes_of(
    affinity: AffinityTerms,
    namespace: str,
    semantics: Semantics,
    settings: GuardSettings,
    before: AffinityTerms = NO_TERMS,
) -> list[Cause]:
    """What the guard holds against the terms of a pod in `namespace`, whoever wants it; those of `before` may stay."""
    if settings.restrict == NOTHING or not affinity.anti_required:
        return []
    uses = resolve(affinity, namespace, semantics, incoming=True).anti_required
    there = {_wherever(term) for term in before.anti_required}
    new = (use for use in uses if _wherever(use.source) not in there)
    found = [_cause(use, settings) for use in new if _restricted(use, settings)]
    return list(dict.fromkeys(found))  # an empty topology key stands for several, each a use of its own


def _wherever(term: PodTerm) -> PodTerm:
    """The term without its place, and without what it tolerates: the guard does not look at either."""
    return msgspec.structs.replace(term, path="", tolerate_namespaces=())


def _restricted(use: ResolvedTerm, settings: GuardSettings) -> bool:
    if settings.restrict == EVERYTHING:
        return True
    wider = any(key not in settings.node_topology_keys for key in use.keys)
    return wider and (settings.restrict == WIDER_THAN_NODE or terms.covers_all_namespaces(use.term.parts[0]))


def _cause(use: ResolvedTerm, settings: GuardSettings) -> Cause:
    if settings.restrict == EVERYTHING:
        return causes.forbidden(use.source.path, _ONLY_THE_EXEMPT)
    key, allowed = go_text.quoted(use.source.topology_key), " or ".join(settings.node_topology_keys)
    across = " across all namespaces" if settings.restrict == ALL_NAMESPACES else ""
    detail = f"{key} reaches beyond a node, and hard anti-affinity{across} may only use {allowed}"
    return causes.forbidden(f"{use.source.path}.topologyKey", detail)
