"""
The anti-affinity guard: how far required anti-affinity may reach, as protection against denial of service.

A pod that is scheduled first and has required anti-affinity against all pods of all namespaces keeps a whole topology
domain for itself. The default rule admits that for a single node and for nothing wider. Kubernetes has no such rule:
docs/differences.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from bayplan.model import namespace_reach, terms
from bayplan.model.labels import Labels
from bayplan.model.namespace_reach import NamespaceReach
from bayplan.model.semantics import Semantics
from bayplan.model.terms import NO_TERMS, AffinityTerms, PodTerm, ResolvedTerm, TermPart, resolve
from bayplan.validating import go_text
from bayplan.validating.fields import Cause, Field

NOTHING, ALL_NAMESPACES, WIDER_THAN_NODE, EVERYTHING = "none", "all-namespaces", "wider-than-node", "all"
NO_NAMESPACES: Mapping[str, Labels] = {}
_ONLY_THE_EXEMPT = "only users, groups and namespaces that are exempt may use hard anti-affinity"


class Requester(msgspec.Struct, frozen=True):
    """
    The user of an admission request. An object from a file has no user and is never exempt.

    `for_template`: the user is a controller of Kubernetes that creates pods from another user's template.
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    for_template: bool = False


class Exempt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The users, groups and namespaces that the guard does not restrict; none by default."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """
    `restrict` is what only exempt requesters may use: required anti-affinity across all namespaces over more than one
    node, required anti-affinity over more than one node, or all required anti-affinity.

    `node_topology_keys` are the keys whose domains are single nodes. `tolerate_namespaces` are added to required
    anti-affinity terms by the mutating webhook. Terms that reach `all_namespaces_percent` of the other namespaces
    that exist count as terms across all namespaces.
    """

    restrict: Literal["none", "all-namespaces", "wider-than-node", "all"] = "all-namespaces"
    node_topology_keys: tuple[str, ...] = (terms.HOSTNAME,)
    exempt: Exempt = Exempt()
    tolerate_namespaces: tuple[str, ...] = ("kube-system",)
    all_namespaces_percent: int = namespace_reach.ALL_NAMESPACES_PERCENT

    def exempts(self, requester: Requester, namespace: str) -> bool:
        """Whether the guard does not restrict this requester's objects in this namespace."""
        exempt = self.exempt
        if namespace in exempt.namespaces or requester.user in exempt.users:
            return True
        # Where users are distinguished, the template was checked against its author; a controller only applies it.
        by_user = bool(exempt.users or exempt.groups)
        return (by_user and requester.for_template) or not set(exempt.groups).isdisjoint(requester.groups)


def validate_anti_affinity(
    affinity: AffinityTerms,
    namespace: str,
    semantics: Semantics,
    settings: GuardSettings,
    *,
    before: AffinityTerms = NO_TERMS,
    namespaces: Mapping[str, Labels] = NO_NAMESPACES,
) -> list[Cause]:
    """
    The causes for which the guard rejects the terms of a pod in `namespace`; the terms of `before` are admitted.

    `namespaces` are those that exist, if that is known.
    """
    if settings.restrict == NOTHING or not affinity.anti_required:
        return []
    uses = resolve(affinity, namespace, semantics, incoming=True).anti_required
    admitted = {_comparable(term) for term in before.anti_required}
    new = [use for use in uses if _comparable(use.source) not in admitted]
    reached = _reach_by_key(uses, namespace, settings, namespaces)
    found = [_cause(use, settings) for use in new if _is_restricted(use, settings)]
    found += [
        _cause(use, settings, reached[use.keys])
        for use in new
        if use.keys in reached
        and not _is_restricted(use, settings)
        and namespace_reach.reaches_others(use.term.parts[0], namespace)
    ]
    return list(dict.fromkeys(found))  # an empty topology key stands for several, each a use of its own


def _comparable(term: PodTerm) -> PodTerm:
    """The term without its path and its tolerated namespaces, which the guard ignores."""
    return msgspec.structs.replace(term, path="", tolerate_namespaces=())


def _is_restricted(use: ResolvedTerm, settings: GuardSettings) -> bool:
    if settings.restrict == EVERYTHING:
        return True
    wider = any(key not in settings.node_topology_keys for key in use.keys)
    return wider and (settings.restrict == WIDER_THAN_NODE or terms.covers_all_namespaces(use.term.parts[0]))


def _reach_by_key(
    uses: Sequence[ResolvedTerm], namespace: str, settings: GuardSettings, namespaces: Mapping[str, Labels]
) -> dict[tuple[str, ...], NamespaceReach]:
    """The topology keys wider than a node whose terms together reach all namespaces that exist."""
    if settings.restrict != ALL_NAMESPACES or not namespaces:
        return {}
    by_key: dict[tuple[str, ...], list[TermPart]] = {}
    for use in uses:
        if any(key not in settings.node_topology_keys for key in use.keys):
            by_key.setdefault(use.keys, []).append(use.term.parts[0])
    reached = {keys: namespace_reach.reach_of(parts, namespace, namespaces) for keys, parts in by_key.items()}
    return {keys: reach for keys, reach in reached.items() if reach.is_all(settings.all_namespaces_percent)}


def _cause(use: ResolvedTerm, settings: GuardSettings, reach: NamespaceReach | None = None) -> Cause:
    term = Field(use.source.path)
    if settings.restrict == EVERYTHING:
        return term.forbidden(_ONLY_THE_EXEMPT)
    key, allowed = go_text.quoted(use.source.topology_key), " or ".join(settings.node_topology_keys)
    across = " across all namespaces" if settings.restrict == ALL_NAMESPACES else ""
    detail = f"{key} reaches beyond a node, and hard anti-affinity{across} may only use {allowed}"
    if reach is not None:
        detail += f"; these terms reach {reach.n_reached} of {reach.n_others} other namespaces"
    return term["topologyKey"].forbidden(detail)
