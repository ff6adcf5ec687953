"""How a cluster is audited: the standard, where the topology of the nodes is read from, and which losses count."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import arguments

if TYPE_CHECKING:
    from bayplan.auditing.catalogue import Catalogue
    from bayplan.auditing.profiles import AuditProfile

LEVELS = ("host", "rack", "zone", "region", "cloud")
STAGES = ("none", "machines", "zones", "clouds", "sites")
ALL = "all"
LOSS_SAFE = "loss-safe:"
_LEGACY, _NEWEST_LEGACY = "legacy", "legacy=head"
_SEVERAL = ("require", "require_stages", "hosting_namespaces", "lose")
_PATHS = ("inventory", "accept")
_TEXTS = ("profile", "scenario", "exclude_workloads", "quorum_workloads")


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    How a cluster is audited. The defaults are those of `bayplan audit`.

    The standard: `profile` is "scs-0214-v2", "scs-0214-v2-draft", "scs-0214-v1", "scs-0213", "ha", "bsi-app-4.4.a19" or
    "legacy". `require` has the ids of further checks, `require_stages` what the control plane must be distributed over
    ("zones") or survive the loss of ("loss-safe:zones"). `allow_undecided` passes what the input leaves undecided. With
    `fail_on` "warning" a recommendation that is not followed is a no. `accept` is a file of accepted findings.

    The topology: `inventory` is a file, `label_keys` leads from a level (host, rack, zone, region, cloud) to the key of
    its label. `zone_is_host`: zone labels are names of hypervisors. `bare_metal`: every node is a separate machine.
    `scenario` is the name of one in a file with labels by node. `reveal_inventory` names machines as the inventory
    does. `hosting` are the files of the cluster that hosts the control plane as pods, in `hosting_namespaces`.

    The losses: `lose` has levels, other properties that nodes share, or "all". Without `reschedule`, displaced pods are
    only counted. `exclude_workloads` and `quorum_workloads` are regular expressions for NAMESPACE/NAME: workloads that
    do not count, and workloads that need a majority of their replicas.
    """

    profile: str = "scs-0214-v2"
    require: Sequence[str] = ()
    require_stages: Sequence[str] = ()
    allow_undecided: bool = False
    fail_on: Literal["fail", "warning"] = "fail"
    accept: str | os.PathLike[str] = ""
    inventory: str | os.PathLike[str] = ""
    reveal_inventory: bool = False
    label_keys: Mapping[str, str] = {}
    zone_is_host: bool = False
    bare_metal: bool = False
    scenario: str = ""
    hosting: Sequence[str | os.PathLike[str]] = ()
    hosting_recursive: bool = False
    hosting_namespaces: Sequence[str] = ()
    lose: Sequence[str] = (ALL,)
    reschedule: bool = True
    exclude_workloads: str = ""
    quorum_workloads: str = ""

    def __post_init__(self) -> None:
        """Copy what could be changed later, and reject what would have no effect."""
        for name in _TEXTS:
            arguments.check_is(name, getattr(self, name), str)
        arguments.check_is("label_keys", self.label_keys, Mapping)
        changed: dict[str, Any] = {name: arguments.several(name, getattr(self, name)) for name in _SEVERAL}
        changed |= {name: arguments.path(name, getattr(self, name)) for name in _PATHS}
        changed |= {"label_keys": dict(self.label_keys), "hosting": arguments.given(self.hosting).paths}
        for name, value in changed.items():
            msgspec.structs.force_setattr(self, name, value)
        arguments.check_choice("fail_on", self.fail_on, ("fail", "warning"))
        if self.reveal_inventory and not self.inventory:
            raise ArgumentError(
                "it is about the names of an inventory: give `inventory` too", argument="reveal_inventory"
            )
        if self.hosting_namespaces and not self.hosting:
            message = "they are namespaces of the hosting cluster: give `hosting` too"
            raise ArgumentError(message, argument="hosting_namespaces")

    @property
    def is_legacy(self) -> bool:
        """Whether to answer as the retired SCS script did: with a single verdict."""
        return self.profile.startswith(_LEGACY)

    def chosen_profile(self) -> AuditProfile:
        """The profile, with the checks of `require` added."""
        from bayplan.auditing import checks, profiles

        name = _NEWEST_LEGACY if self.profile == _LEGACY else self.profile
        arguments.check_choice("profile", name, tuple(profiles.PROFILES))
        unknown = [one for one in self.require if one not in checks.ALL]
        if unknown:
            from bayplan.reading import acceptances

            near = (
                acceptances.nearest(unknown[0], checks.ALL) or "; docs/reference/audit.md and -o json list the checks"
            )
            raise ArgumentError(f"there is no check {unknown[0]}{near}", argument="require")
        return profiles.requiring(profiles.PROFILES[name], self.require)

    def stages(self) -> list[tuple[str, str]]:
        """The required stages, each with its meaning: distributed or loss-safe."""
        found = []
        for text in self.require_stages:
            name = text.removeprefix(LOSS_SAFE)
            if name not in STAGES:
                expected = f"expected one of {', '.join(STAGES)}, or loss-safe: and one of them, got {text!r}"
                raise ArgumentError(expected, argument="require_stages")
            found.append(("loss-safe" if text.startswith(LOSS_SAFE) else "distributed", name))
        return found

    def catalogue(self) -> Catalogue:
        """The label keys of each level, and what they mean."""
        from bayplan.auditing.catalogue import Catalogue

        catalogue = Catalogue(
            zone_is_host=self.zone_is_host, bare_metal=self.bare_metal, inventory_revealed=self.reveal_inventory
        )
        for level, key in level_keys(self.label_keys).items():
            catalogue = catalogue.preferring(level, key)
        return catalogue

    def lost_levels(self) -> list[str]:
        """What fails at once: levels, and other properties that nodes share."""
        from bayplan.auditing.survival import ALL_LEVELS

        return [level for name in self.lose or (ALL,) for level in (ALL_LEVELS if name == ALL else (name,))]

    def named_losses(self) -> frozenset[str]:
        """The names that are not levels; they may be columns of the inventory."""
        from bayplan.auditing.survival import ALL_LEVELS

        return frozenset(self.lose) - {ALL, *ALL_LEVELS}


def level_keys(given: Mapping[str, str]) -> dict[str, str]:
    """Level → label key; raises ArgumentError for anything else."""
    for level, key in given.items():
        if level not in LEVELS or not key or not isinstance(key, str):
            expected = f"expected LEVEL=KEY with a level of {', '.join(LEVELS)}, got '{level}={key}'"
            raise ArgumentError(expected, argument="label_keys")
    return dict(given)
