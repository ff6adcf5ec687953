"""The affinity terms of a placement, tried in order from the one observed last. Question in, answer out."""

from reference.fleet import placement_fields, tiers, workload_terms
from reference.fleet.attempt import Attempt
from reference.fleet.failures import Failure
from reference.fleet.objects import Fleet


def answer(question):
    """The verdicts are those of the term that was chosen, or else of the first that failed."""
    fleet, name = Fleet(question), question.get("name") or ""
    try:
        fleet.workload_labels(fleet.binding)
        terms = tiers.read(placement_fields.read(fleet, fleet.binding), fleet.semantics)
        wanted_peers = workload_terms.read(fleet, fleet.binding)
    except Failure as failure:
        return failed(name, [failure], {})
    if terms is None:  # a list of no terms: Karmada reports success and changes nothing
        return placed(name, "", fleet.binding.clusters, [], {})
    failures, verdicts = [], None
    for term in terms[starting_with(terms, fleet.binding.observed) :]:
        attempt = Attempt(fleet, term, wanted_peers)
        try:
            return placed(name, term.name, attempt.place(), failures, attempt.verdicts())
        except Failure as failure:
            failures.append(failure)
            verdicts = verdicts or attempt.verdicts()
    return failed(name, failures, verdicts)


def starting_with(terms, observed):
    """The position of that name; 0 if there is none."""
    for position, term in enumerate(terms):
        if observed and term.name == observed:
            return position
    return 0


def placed(name, observed, clusters, failures, verdicts):
    return {
        "name": name,
        "observedAffinityName": observed,
        "clusters": [{"name": cluster, "replicas": replicas} for cluster, replicas in clusters],
        "reason": "",
        "errors": [failure.message for failure in failures],
        "verdicts": verdicts,
    }


def failed(name, failures, verdicts):
    """The first failure gives the reason, whatever the failures of later terms."""
    return {**placed(name, "", [], failures, verdicts), "reason": failures[0].reason}
