"""The smallest question that still shows a difference: what it does not need is taken away."""

import copy
import json

from agreeing import schedulers
from bayplan.validating import admission

KEPT = ("name", "kind", "apiVersion")
TRIED_AT_ONCE = 120
MAX_ROUNDS = 80


def minimised(found):
    """The smallest `Compared` with the same difference."""
    for _ in range(MAX_ROUNDS):
        smaller = _smaller(found)
        if smaller is None:
            break
        found = smaller
    return found


def _smaller(found):
    """Without as many parts as possible, large ones first; None if every part is needed."""
    paths = [path for path in _paths(found.question) if len(path) > 1]
    paths = sorted(paths, key=lambda path: -_size(_at(found.question, path)))
    for start in range(0, len(paths), TRIED_AT_ONCE):
        tried = paths[start : start + TRIED_AT_ONCE]
        alone = _still_different(found, [[path] for path in tried])
        if not alone:
            continue
        removable = [paths[0] for _, paths in alone]
        together = [removable[: max(2, len(removable) >> halved)] for halved in range(5) if len(removable) > 1]
        best, _ = min([*alone, *_still_different(found, together)], key=lambda one: _size(one[0].question))
        return best
    return None


def _still_different(found, removals):
    candidates, kept = [], []
    for paths in removals:
        question = _without(found.question, paths)
        if is_admitted(question):
            candidates.append(question)
            kept.append(paths)
    answered = schedulers.compare(found.kind, found.version, candidates) if candidates else ()
    pairs = zip(answered, kept, strict=True)
    return [(one, paths) for one, paths in pairs if (one.difference, one.known) == (found.difference, found.known)]


def is_admitted(question):
    """Whether an API server would take every object; what it merges into selectors counts as written by it."""
    written = [*question.get("nodes", ()), *question.get("pods", ()), *question.get("objects", ())]
    written += [next(iter(step.values()), {}) for step in question.get("steps", ())]
    written += [question[one] for one in ("pod",) if one in question]
    causes = [cause for one in written if "kind" in one for cause in admission.validate_all(one)]
    return all("exists in both" in cause.message for cause in causes)


def _paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key in KEPT:
            continue
        if key != "metadata" and path[-2:-1] != ("steps",):
            yield (*path, key)
        yield from _paths(inner, (*path, key))


def _at(value, path):
    for key in path:
        value = value[key]
    return value


def _without(question, paths):
    """Without these parts; those inside another one go with it, and of a list the last goes first."""
    tried = copy.deepcopy(question)
    for path in sorted(
        paths,
        key=lambda path: tuple((isinstance(key, int), key if isinstance(key, int) else 0) for key in path),
        reverse=True,
    ):
        try:
            container = _at(tried, path[:-1])
            del container[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue
    return tried


def _size(value):
    return len(json.dumps(value))
