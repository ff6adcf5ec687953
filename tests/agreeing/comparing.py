"""Where two answers differ, in a few words that are the same for differences of one cause."""

import re

from asking import comparable, comparable_fleet, comparable_preemption


def _causes(answer):
    return sorted({(cause["reason"], cause["field"], cause["message"]) for cause in answer["causes"]})


VIEWS = {
    "pods": comparable,
    "preemption": comparable_preemption,
    "fleet": comparable_fleet,
    "admission": _causes,
}


def difference(kind, real, ours):
    """What differs first, without names and amounts; "" if nothing does."""
    if "answers" in real and "answers" in ours:
        pairs = list(zip(real["answers"], ours["answers"], strict=True))
        return next((f"steps: {found}" for one, other in pairs if (found := difference(kind, one, other))), "")
    if _failed(real) or _failed(ours):
        return _failures(real, ours)
    one, other = VIEWS[kind](real), VIEWS[kind](ours)
    if other in [VIEWS[kind](chosen) for chosen in real.get("others", ())]:
        return ""
    named = {"pods": _pods, "preemption": _preemption, "fleet": _fleet, "admission": _admission}[kind]
    return "" if one == other else named(one, other)


def _failed(answer):
    return bool(answer.get("error"))


def _failures(real, ours):
    """Both may fail, each in its own words: then nothing is placed."""
    if _failed(real) and _failed(ours):
        return ""
    side, text = ("kube", real["error"]) if _failed(real) else ("bayplan", ours["error"])
    return f"only {side} fails: {_plain(text)}"


def _pods(real, ours):
    for name in real["nodes"].keys() | ours["nodes"].keys():
        one, other = real["nodes"].get(name), ours["nodes"].get(name)
        if one is None or other is None:
            return "the nodes answered for"
        if one[:3] != other[:3]:
            return f"{_verdict(one)} | {_verdict(other)}"
    for name, one in real["nodes"].items():
        other = ours["nodes"][name]
        if one != other:
            rules = {rule for rule, _ in one[4].items() ^ other[4].items()}
            return f"score of {', '.join(sorted(rules)) or 'the total'}"
    return "message" if real["message"] != ours["message"] else "best"


def _verdict(node):
    code, plugin, reasons = node[:3]
    return f"{code} {plugin} {_plain('; '.join(reasons))}".strip()


def _preemption(real, ours):
    """`real` and `ours` are nominated node, victims, message."""
    if bool(real[0]) != bool(ours[0]):
        return f"{'no ' if not ours[0] else ''}node nominated"
    if real[2] != ours[2]:
        return f"message {_plain(real[2])} | {_plain(ours[2])}"
    return "nominated" if real[0] != ours[0] else "victims"


def _fleet(real, ours):
    if real[2] != ours[2]:
        return f"reason {real[2] or 'none'} | {ours[2] or 'none'}"
    return "clusters" if real[0].keys() != ours[0].keys() else "replicas" if real[0] != ours[0] else "affinity name"


def _admission(real, ours):
    """The first cause that only one of them has, without positions."""
    missing = [cause for cause in real if cause not in ours]
    side, (reason, field, message) = ("kube", missing[0]) if missing else ("bayplan", min(set(ours) - set(real)))
    return f"only {side} rejects {re.sub(r'[0-9]+', '#', field)}: {reason} {_plain(message)}"


def _plain(text):
    return re.sub(r"\d+", "#", re.sub(r'"[^"]*"', '"…"', text))[:160]
