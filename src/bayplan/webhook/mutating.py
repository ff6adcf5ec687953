"""
The daemon namespaces that every hard anti-affinity term tolerates, written into the annotation `bayplan.io/affinity`.

Terms of `spec.affinity` have no field for it: for those there is the switch `daemonNamespaces`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.validating import pod_affinity, yaml_text
from bayplan.validating.affinity_annotation import AFFINITY, LONGEST

_HARD = (pod_affinity.REQUIRED_WHILE_RUNNING, pod_affinity.REQUIRED)
_POINTER = f"/metadata/annotations/{AFFINITY.replace('~', '~0').replace('/', '~1')}"


def patch(annotations: dict[str, str] | None, tolerated: tuple[str, ...]) -> list[dict[str, Any]]:
    """
    The JSON patch that makes every hard anti-affinity term tolerate these namespaces; nothing if all do.

    A malformed annotation is left as it is: whoever validates it says what is wrong.
    """
    text = (annotations or {}).get(AFFINITY)
    if text is None or len(text) > LONGEST:
        return []
    try:
        content = yaml_text.parse(text)
    except ValueError:
        return []
    changed = [_tolerating(term, tolerated) for term in _hard_terms(content)]
    if not any(changed):
        return []
    return [{"op": "replace", "path": _POINTER, "value": msgspec.json.encode(content).decode()}]


def _hard_terms(content: object) -> list[dict[str, Any]]:
    anti = content.get(pod_affinity.ANTI_AFFINITY) if isinstance(content, dict) else None
    lists = [anti.get(when) for when in _HARD] if isinstance(anti, dict) else []
    return [term for listed in lists if isinstance(listed, list) for term in listed if isinstance(term, dict)]


def _tolerating(term: dict[str, Any], tolerated: tuple[str, ...]) -> bool:
    """Let the term tolerate the namespaces; whether it did not before."""
    listed = term.get("tolerateNamespaces") or []
    if not isinstance(listed, list):
        return False
    missing = [namespace for namespace in tolerated if namespace not in listed]
    if missing:
        term["tolerateNamespaces"] = [*listed, *missing]
    return bool(missing)
