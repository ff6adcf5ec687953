"""Rules that Kubernetes has no field for, read from annotations."""

from __future__ import annotations

from functools import lru_cache

from bayplan.validating import annotations as checking
from bayplan.validating.fields import Field

AFFINITY = checking.AFFINITY
Annotated = checking.Affinity
_SHORT = 4096  # characters; longer ones are rare, and remembering them would take room


def affinity_of(annotations: dict[str, str] | None, labels: dict[str, str] | None) -> tuple[Annotated | None, str]:
    """The terms that the annotation adds, and what is wrong with it; a faulty one is never read in part."""
    if not annotations or AFFINITY not in annotations:
        return None, ""
    text = annotations[AFFINITY]
    read = _read if len(text) <= _SHORT else _read.__wrapped__
    return read(text, tuple(sorted((labels or {}).items())))


@lru_cache(maxsize=4096)
def _read(text: str, labels: tuple[tuple[str, str], ...]) -> tuple[Annotated | None, str]:
    """Pods of one template have the same text, and reading YAML takes longer than all else about a pod."""
    causes = checking.causes_of(Field("metadata", {"annotations": {AFFINITY: text}}), dict(labels))
    if causes:
        return None, "; ".join(str(cause) for cause in causes)
    return checking.read(text), ""
