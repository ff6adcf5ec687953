"""Terms that reach everybody: into every namespace, or at every pod. Knows nothing of who may use them."""

from __future__ import annotations

from bayplan.model import labels
from bayplan.model.terms import TermPart

# Every namespace has this label, put there by the API server, so asking for it asks for nothing.
_IN_EVERY_NAMESPACE = labels.Requirement("kubernetes.io/metadata.name", labels.EXISTS)


def covers_all_namespaces(part: TermPart) -> bool:
    """Whether the term looks into every namespace there is or will be, those it tolerates excepted."""
    if part.namespaces is None:
        return True
    selector = part.namespace_selector
    return selector is not None and all(asked == _IN_EVERY_NAMESPACE for asked in selector.requirements)


def covers_all_pods(part: TermPart) -> bool:
    """Whether the term means every pod of every namespace, those it tolerates excepted."""
    return part.selector == labels.EVERYTHING and covers_all_namespaces(part)
