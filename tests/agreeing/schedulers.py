"""Both sides of a comparison: the real scheduler's answers and Bayplan's, to many questions at once."""

import dataclasses

from agreeing import bayplan_answers, comparing, known
from live import oracles

MANY_ATTEMPTS = 60  # in which each of a few nodes that are equally good is chosen


@dataclasses.dataclass
class Compared:
    """A question with both answers, what differs ("" if nothing does), and the known reason for it, if there is one."""

    kind: str
    version: str
    question: dict
    real: dict
    ours: dict
    difference: str
    known: str = ""


def compare(kind, version, questions):
    """Ask both, the real scheduler in one call."""
    questions = [with_version(kind, one, version) for one in questions]
    return with_ours(kind, version, questions, oracles.answers(kind, questions, version))


def with_ours(kind, version, questions, real):
    """Compare the real answers with Bayplan's. A preemption that differs is attempted more often: it may be by chance."""
    found = [_compared(kind, version, one, answer) for one, answer in zip(questions, real, strict=True)]
    differing = [place for place, one in enumerate(found) if kind == "preemption" and one.difference and not one.known]
    if differing:
        asked = [questions[place] for place in differing]
        again = oracles.answers(kind, asked, version, attempts=MANY_ATTEMPTS)
        for place, question, answer in zip(differing, asked, again, strict=True):
            found[place] = _compared(kind, version, question, answer)
    return found


def _compared(kind, version, question, real):
    ours = bayplan_answers.answer(kind, question)
    found = Compared(kind, version, question, real, ours, comparing.difference(kind, real, ours))
    if found.difference:
        found.known = known.reason(found)
    return found


def with_version(kind, question, version):
    if kind == "fleet":
        return question
    return {**question, "options": {**question.get("options", {}), "kubernetesVersion": version}}
