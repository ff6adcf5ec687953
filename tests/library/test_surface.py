"""What is public: these names and no others, and the page that describes them."""

import importlib
import inspect
import pydoc
import re
import subprocess
import sys

import pytest

import bayplan
import bayplan.testing
from bayplan.cli.command_table import SUMMARIES

from . import reference_page

# A new name is a promise: see docs/reference/python.md.
PUBLIC = [
    "ArgumentError",
    "AuditCheck",
    "AuditReport",
    "AuditSettings",
    "BayplanError",
    "ChargedNamespace",
    "Cluster",
    "ClusterAudit",
    "ClusterError",
    "ClusterMoment",
    "ComparedRuns",
    "Explanation",
    "Fault",
    "FixedManifests",
    "Fleet",
    "FleetPlan",
    "FleetScaling",
    "InputError",
    "JudgedExpectation",
    "MovePlan",
    "NodeLabelChange",
    "NodeLabels",
    "Plan",
    "PlannedBinding",
    "PlannedMove",
    "PlannedPod",
    "PlannedRollout",
    "Problem",
    "QuotaReport",
    "ReasonPage",
    "Reasons",
    "Replay",
    "ReplayedDecision",
    "Room",
    "RoomForPod",
    "RuleFailure",
    "Settings",
    "SimulationRun",
    "StateSnapshot",
    "SuggestedFix",
    "TimelineEvent",
    "Validation",
    "Verdict",
    "ViolatedRule",
    "Violations",
    "WorkloadOutcome",
    "__version__",
    "decide",
    "explain_decision",
    "explain_rule",
    "load",
    "node_labels",
    "replay",
    "validate",
]

# Each command, and what of the library it is built on; the others are outside, for the reasons in decision 0031.
BUILT_ON = {
    "audit": ("Cluster.audit", "AuditReport", "node_labels"),
    "decide": ("decide",),
    "explain": ("Cluster.explain", "Fleet.explain"),
    "explain-rule": ("explain_rule",),
    "place": ("Cluster.place", "Cluster.how_many_more", "Fleet.place", "Fleet.scale", "Fleet.scale_to_most"),
    "quota": ("Cluster.quota",),
    "rebalance": ("Cluster.rebalance", "Fleet.rebalance"),
    "replay": ("replay", "explain_decision"),
    "simulate": ("Cluster.simulate", "Cluster.compare_simulations"),
    "snapshot": ("Cluster.snapshot", "Fleet.snapshot"),
    "ui": ("Cluster.explain", "Cluster.violations", "Fleet.place", "Fleet.explain", "Fleet.scale", "Fleet.violations"),
    "validate": ("validate",),
    "version": ("__version__",),
    "violations": ("Cluster.violations", "Fleet.violations"),
}
OUTSIDE = {"bench", "completion", "config", "run", "webhook-certificates"}


def test_these_names_are_public():
    assert bayplan.__all__ == PUBLIC
    assert dir(bayplan) == PUBLIC
    assert bayplan.testing.__all__ == ["assert_fits", "assert_survives", "assert_valid"]
    everything = {}
    exec("from bayplan import *", everything)
    assert sorted(everything.keys() - {"__builtins__"}) == PUBLIC


@pytest.mark.parametrize("name", ["State", "Reading", "PlacementIndex", "Engine", "Materials", "Supposed", "Given", "utils"])  # fmt: skip
def test_other_names_cannot_be_imported(name):
    assert not hasattr(bayplan, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}'"):
        exec(f"from bayplan import {name}", {})


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_a_public_name_is_documented_and_has_no_other_public_attributes_than_the_page_shows(name):
    thing = getattr(bayplan, name)
    assert inspect.getdoc(thing)
    section = reference_page.page().partition(f"\n### {name}\n")[2].partition("\n### ")[0]
    assert section
    if not inspect.isclass(thing):
        return
    shown = {*reference_page.fields(thing), *reference_page.members(thing)}
    common = {"to_dict", "to_text", "to_frame"} if hasattr(thing, "to_text") else set()
    of_bases = {"add_note", "args", "with_traceback", "keys", "items", "values", "get"}  # of exceptions and mappings
    assert {one for one in dir(thing) if not one.startswith("_")} - common - of_bases <= shown
    for one in shown:
        assert one in section


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_help_shows_a_public_name(name):
    """A type that is imported for type checkers only must not keep `help` and notebooks from showing the signature."""
    thing = getattr(bayplan, name)
    assert name in pydoc.plain(pydoc.render_doc(thing))
    if not (inspect.isclass(thing) and issubclass(thing, Exception)):
        assert inspect.signature(thing) is not None


def test_help_shows_the_library():
    shown = pydoc.plain(pydoc.render_doc(bayplan))
    assert "place(self" in shown
    assert "assert_survives" in pydoc.plain(pydoc.render_doc(bayplan.testing))


def test_what_is_private_has_an_underscore_or_is_not_on_the_surface():
    """No field or method of a public class has a type that can only be imported from a private module, but for these."""
    allowed = {"Objects", "Charging", "Self", "Any", "Literal", "Callable", "Iterable", "Iterator", "Mapping", "Sequence", "Unpack"}  # fmt: skip
    words = {"str", "int", "float", "bool", "bytes", "None", "dict", "tuple", "list", "os", "pd", "object", "PathLike", "DataFrame", "State"}  # fmt: skip
    for name in PUBLIC:
        thing = getattr(bayplan, name)
        if not inspect.isclass(thing):
            continue
        for kind in reference_page.fields(thing).values():
            named = set(
                re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'|\"[^\"]*\"", "", reference_page.written(kind).text))
            )
            assert named <= {*PUBLIC, *allowed, *words}, (name, kind)


def test_the_page_is_current():
    assert reference_page.PAGE.read_text(encoding="utf-8") == reference_page.page(), (
        "run tests/library/reference_page.py"
    )


def test_the_page_has_every_name_once():
    listed = [name for names in reference_page.SECTIONS.values() for name in names]
    assert sorted([*listed, "__version__"]) == sorted(PUBLIC)


def test_every_command_is_built_on_the_library_or_outside_of_it():
    assert BUILT_ON.keys() | OUTSIDE == SUMMARIES.keys()
    for names in BUILT_ON.values():
        for name in names:
            cls, _, method = name.partition(".")
            assert hasattr(getattr(bayplan, cls), method) if method else hasattr(bayplan, cls)


def test_importing_the_library_imports_nothing_of_it(source_folder):
    code = (
        "import sys, bayplan; print([name for name in sys.modules if name.startswith(('bayplan.', 'numpy', 'click'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(source_folder)})  # fmt: skip
    assert done.stdout == "[]\n"


def test_the_library_does_not_import_the_command_line(source_folder):
    code = (
        "import sys, bayplan; plan = bayplan.Cluster.from_manifests('examples/01-first-pod').place(explain=True); str(plan)\n"
        "print([name for name in sys.modules if name.startswith(('click', 'bayplan.cli', 'aiohttp'))])"
    )
    root = reference_page.PAGE.parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, env={"PYTHONPATH": str(source_folder)})  # fmt: skip
    assert done.stdout == "[]\n"


def test_errors_are_one_hierarchy():
    errors = importlib.import_module("bayplan.kube_api.errors")
    every = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, Exception)]
    assert every
    assert all(issubclass(one, bayplan.ClusterError) for one in every if one.__module__ == errors.__name__)
    for one in (bayplan.InputError, bayplan.ArgumentError, bayplan.ClusterError):
        assert issubclass(one, bayplan.BayplanError)
