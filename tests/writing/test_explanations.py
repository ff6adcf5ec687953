import msgspec
import pytest

from bayplan.explaining.explanation import Explanation, TargetVerdict
from bayplan.explaining.fixes import Fix
from bayplan.rules.rule import Failure
from bayplan.writing import explanations

SKEW = Failure(
    "topology-spread",
    "node(s) didn't match pod topology spread constraints",
    "zone=a would hold 3 while zone=b holds 1; maxSkew is 1",
    peers=("shop/web-1", "shop/web-2"),
)
TAINT = Failure("taint", "node(s) had untolerated taint(s)", "dedicated=db:NoSchedule is not tolerated")


def unschedulable(*targets, fixes=()):
    return Explanation("shop/web-4", "", "0/2 nodes are available: …", list(targets), list(fixes))


def test_one_line_per_target_and_rule():
    found = unschedulable(
        TargetVerdict("a1", False, failures=[SKEW]),
        TargetVerdict("b1", False, failures=[TAINT, SKEW]),
        fixes=[Fix("tolerate dedicated=db:NoSchedule", ["b1"])],
    )
    assert explanations.text(found) == (
        "0/2 nodes are available: …\n"
        "  a1  topology-spread  zone=a would hold 3 while zone=b holds 1; maxSkew is 1\n"
        "                       peers: shop/web-1, shop/web-2\n"
        "  b1  taint            dedicated=db:NoSchedule is not tolerated\n"
        "      topology-spread  zone=a would hold 3 while zone=b holds 1; maxSkew is 1\n"
        "                       peers: shop/web-1, shop/web-2\n"
        "\n"
        "What would make it fit:\n"
        "  1. tolerate dedicated=db:NoSchedule: fits on b1\n"
    )


def test_feasible_targets_are_ordered_by_score():
    targets = [
        TargetVerdict("a", True, score=5, scores={"NodeResourcesFit": 5, "ImageLocality": 0}),
        TargetVerdict("c", True, True, 9, {"NodeResourcesFit": 9}),
        TargetVerdict("b", True, score=9, scores={"NodeResourcesFit": 9}),
        TargetVerdict("d", False, failures=[TAINT]),
    ]
    assert explanations.text(Explanation("shop/x", "c", "", targets, [])) == (
        "shop/x is placed on c with a score of 9.\n"
        "  c  fits  9  NodeResourcesFit 9\n"
        "  b  fits  9  NodeResourcesFit 9\n"
        "  a  fits  5  NodeResourcesFit 5\n"
        "  d  taint  dedicated=db:NoSchedule is not tolerated\n"
    )


def test_many_targets_are_grouped_by_their_failures():
    many = [TargetVerdict(f"n{i:04d}", False, failures=[TAINT]) for i in range(5000)]
    found = unschedulable(*many, TargetVerdict("z", False, failures=[SKEW]))
    assert explanations.text(found) == (
        "0/2 nodes are available: …\n"
        "  n0000 and 4999 more  taint            dedicated=db:NoSchedule is not tolerated\n"
        "  z                    topology-spread  zone=a would hold 3 while zone=b holds 1; maxSkew is 1\n"
        "                                        peers: shop/web-1, shop/web-2\n"
        "  (--all shows every node)\n"
    )
    assert explanations.text(found, every=True).count("\n") == 5003


def test_many_feasible_targets_are_abbreviated():
    many = [TargetVerdict(f"n{i:02d}", True, i == 0, 1) for i in range(30)]
    text = explanations.text(Explanation("shop/x", "n00", "", many, []))
    assert text.endswith("  and 20 more that fit (--all shows them)\n")


def test_many_peers_are_abbreviated():
    crowd = Failure("pod-affinity", "r", "9 pods in zone=a", peers=tuple(f"p{i}" for i in range(9)))
    found = unschedulable(TargetVerdict("a", False, failures=[crowd]))
    assert "peers: p0, p1, p2, p3, p4 and 4 more\n" in explanations.text(found)
    assert "p8\n" in explanations.text(found, every=True)


def test_the_term_and_peers_are_not_repeated():
    failure = Failure("pod-affinity", "r", "shop/a matches app=web", term="app=web", peers=("shop/a",))
    assert explanations.text(unschedulable(TargetVerdict("a", False, failures=[failure]))).count("\n") == 2


def test_escape_sequences_are_stripped():
    failure = Failure("taint", "r", "key\x1b[2J=v:NoSchedule")
    assert "\x1b" not in explanations.text(unschedulable(TargetVerdict("a", False, failures=[failure])))


def test_the_document_follows_the_machine_contract():
    found = unschedulable(TargetVerdict("a1", False, failures=[SKEW]), fixes=[Fix("more nodes", ["n"])])
    document = explanations.document(found)
    assert document["kind"] == "Explanation"
    assert document["verdicts"]["a1"] == {
        "fits": False,
        "tier": None,
        "score": None,
        "available": None,
        "scores": {},
        "failures": [
            {
                "rule": "topology-spread",
                "reason": SKEW.reason,
                "detail": SKEW.detail,
                "term": "",
                "domain": "",
                "peers": ["shop/web-1", "shop/web-2"],
            }
        ],
    }
    assert document["fixes"] == [{"change": "more nodes", "fitsOn": ["n"]}]


def anti_affinity(domain, peer, existing=False):
    verb = "has anti-affinity to" if existing else "matches"
    return Failure(
        "pod-affinity",
        "existing" if existing else "own",
        detail=f"{peer} in {domain} {verb} app=web",
        domain=domain,
        peers=(peer,),
    )


def test_groups_differ_by_domain_and_peer():
    """One pod must not stand for the nodes of three zones."""
    many = [
        TargetVerdict(f"n{i:02d}", False, failures=[anti_affinity(f"zone={'abc'[i % 3]}", f"shop/web-{i % 3}")])
        for i in range(21)
    ]
    lines = explanations.text(unschedulable(*many)).splitlines()
    assert lines[1:] == [
        "  n00 and 6 more  pod-affinity  shop/web-0 in zone=a matches app=web",
        "  n01 and 6 more  pod-affinity  shop/web-1 in zone=b matches app=web",
        "  n02 and 6 more  pod-affinity  shop/web-2 in zone=c matches app=web",
        "  (--all shows every node)",
    ]


def test_what_reads_alike_in_every_domain_is_one_group():
    """That no pod matches is true of each zone, and says nothing of any."""
    nowhere = [Failure("pod-affinity", "r", "no placed pod matches app=web", domain=f"zone={zone}") for zone in "abc"]
    many = [TargetVerdict(f"n{i:02d}", False, failures=[nowhere[i % 3]]) for i in range(21)]
    lines = explanations.text(unschedulable(*many)).splitlines()
    assert lines[1:] == [
        "  n00 and 20 more  pod-affinity  no placed pod matches app=web",
        "  (--all shows every node)",
    ]


def test_what_differs_on_every_target_is_one_group_with_an_example():
    many = [
        TargetVerdict(f"n{i:02d}", False, failures=[anti_affinity(f"host=n{i:02d}", f"shop/web-{i}")])
        for i in range(21)
    ]
    lines = explanations.text(unschedulable(*many)).splitlines()
    assert lines[1:] == [
        "  21 such as n00  pod-affinity  shop/web-0 in host=n00 matches app=web",
        "  (a line with 'such as' shows the first node of its group; --all shows every node)",
    ]


def test_both_directions_between_two_pods_are_one_line():
    both = [anti_affinity("zone=a", "shop/web-1"), anti_affinity("zone=a", "shop/web-1", existing=True)]
    lines = explanations.text(unschedulable(TargetVerdict("a1", False, failures=both))).splitlines()
    assert lines[1:] == ["  a1  pod-affinity  shop/web-1 in zone=a matches app=web, and has anti-affinity to app=web"]


def test_the_second_direction_names_its_term_if_it_is_another():
    second = msgspec.structs.replace(anti_affinity("zone=a", "shop/web-1", existing=True), term="spec.x[1]")
    both = [anti_affinity("zone=a", "shop/web-1"), second]
    lines = explanations.text(unschedulable(TargetVerdict("a1", False, failures=both))).splitlines()
    assert lines[1].endswith("matches app=web, and has anti-affinity to app=web by spec.x[1]")


def test_different_peers_keep_lines_of_their_own():
    both = [anti_affinity("zone=a", "shop/web-1"), anti_affinity("zone=a", "shop/web-2", existing=True)]
    assert len(explanations.text(unschedulable(TargetVerdict("a1", False, failures=both))).splitlines()) == 3


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_lines_fit_the_terminal_beside_long_names(width):
    name = "ip-10-0-113-20.eu-central-1.compute.int"
    found = unschedulable(*(TargetVerdict(f"{name}{i}"[: width - 2], False, failures=[SKEW, TAINT]) for i in range(3)))
    text = explanations.text(found, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert text.split() == explanations.text(found).split()
    assert all(line.startswith("  ") for line in text.splitlines()[1:]), "what is indented stays so"


@pytest.mark.parametrize("width", [24, 30, 40, 80])
def test_a_name_that_is_longer_than_a_line_keeps_its_indent(width):
    name = "ip-10-0-113-20.eu-central-1.compute.internal"
    found = unschedulable(
        TargetVerdict(name, False, failures=[SKEW, TAINT]),
        fixes=[Fix(f"remove taint dedicated=db:NoSchedule from {name}", [name])],
    )
    lines = explanations.text(found, width=width).splitlines()
    assert all(line.startswith("  ") for line in lines[1:] if line and not line.startswith("What would"))
    # Only what has no space is wider than the terminal.
    assert all(len(line) <= width or " " not in line.strip() for line in lines)
    assert any(line.startswith("  1. ") for line in lines)
    assert any(line.startswith("     ") for line in lines), "what continues a fix is below its text"


def test_beside_long_names_rules_are_not_padded_where_there_is_no_room():
    found = unschedulable(TargetVerdict("ip-10-0-113-20", False, failures=[SKEW, TAINT]))
    assert explanations.text(found, width=40).splitlines()[1:5] == [
        "  ip-10-0-113-20",
        "    topology-spread  zone=a would hold 3",
        "             while zone=b holds 1;",
        "             maxSkew is 1",
    ]


def test_a_path_is_not_broken_if_it_fits_further_to_the_left():
    term = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
    failure = Failure("pod-affinity", "reason", "no pod matches app=cache", term=term)
    fix = Fix(f"make {term} (app=cache) preferred", ["ip-10-0-113-20"])
    lines = explanations.text(unschedulable(TargetVerdict("n", False, failures=[failure]), fixes=[fix]), width=80)
    assert f" by {term}\n" in lines
    assert f"     {term}\n" in lines
    assert max(map(len, lines.splitlines())) <= 80


def test_few_targets_that_are_rejected_for_the_same_are_one_group():
    other = msgspec.structs.replace(TAINT, detail="x is not tolerated")
    failures = {"a1": TAINT, "a2": SKEW, "a3": TAINT, "b1": TAINT, "b2": other}
    found = unschedulable(*(TargetVerdict(name, False, failures=[one]) for name, one in failures.items()))
    names = [line[2:15].strip() for line in explanations.text(found).splitlines()[1:] if not line.startswith("   ")]
    assert names == ["a1 and 2 more", "a2", "b2", "(--all shows"]
    assert "b1  taint " in explanations.text(found, every=True)


def test_two_equal_targets_are_shown_by_name():
    found = unschedulable(*(TargetVerdict(name, False, failures=[TAINT]) for name in ("a", "b")))
    assert explanations.text(found).count("taint  dedicated=db") == 2
