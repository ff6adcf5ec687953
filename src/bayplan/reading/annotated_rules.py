"""Rules that Kubernetes has no field for, read from annotations."""

from __future__ import annotations

from bayplan.validating import annotations as checking
from bayplan.validating.fields import Field

AFFINITY = checking.AFFINITY
Annotated = checking.Affinity


def affinity_of(annotations: dict[str, str] | None, labels: dict[str, str] | None) -> tuple[Annotated | None, str]:
    """The terms that the annotation adds, and what is wrong with it; a faulty one is never read in part."""
    if not annotations or AFFINITY not in annotations:
        return None, ""
    causes = checking.causes_of(Field("metadata", {"annotations": annotations}), labels or {})
    if causes:
        return None, "; ".join(str(cause) for cause in causes)
    return checking.read(annotations[AFFINITY]), ""
