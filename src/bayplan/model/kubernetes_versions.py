"""
The versions of Kubernetes whose scheduler Bayplan knows, and which of them is nearest to another one.

What differs between them is decided where it matters; `docs/differences.md` has a row for each difference.
"""

from __future__ import annotations

import enum
import re

_NUMBERS = re.compile(r"v?(\d+)\.(\d+)(?:$|[^\d])")


class KubernetesVersion(enum.StrEnum):
    """Ordered: `version >= V1_37`."""

    V1_36 = "1.36"
    V1_37 = "1.37"


V1_36, V1_37 = KubernetesVersion.V1_36, KubernetesVersion.V1_37
DEFAULT_VERSION = V1_36


def known_version(text: str) -> KubernetesVersion | None:
    """The version that a text such as `1.37`, `v1.37.1` or `1.37+` names; None if it is not known."""
    numbers = _numbers_of(text)
    return next((one for one in KubernetesVersion if _numbers_of(one) == numbers), None)


def nearest_version(text: str) -> KubernetesVersion:
    """The known version nearest to the one that a server reports; the default one if the text is no version."""
    numbers = _numbers_of(text)
    if numbers is None:
        return DEFAULT_VERSION
    earlier = [one for one in KubernetesVersion if (_numbers_of(one) or numbers) <= numbers]
    return max(earlier, default=min(KubernetesVersion))


def _numbers_of(text: str) -> tuple[int, int] | None:
    found = _NUMBERS.match(text)
    return (int(found[1]), int(found[2])) if found else None
