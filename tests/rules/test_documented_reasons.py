"""Every reason that a rule can give has one page, at a rule."""

import ast
import importlib
import inspect
import pkgutil

import pytest

from bayplan import rules
from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.explaining import fit_error
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Reason
from bayplan.model.workloads import Requests
from bayplan.rules import fleet_profile, placeable, profiles
from bayplan.rules.resources_fit import INSUFFICIENT, TOO_MANY_PODS, ResourcesFit
from bayplan.rules.rule import Rule
from bayplan.rules.volume_claims import CLAIM_AWAITED
from rules.shorthand import pod, situation_of

TABLES = {rule.id: type(rule) for rule in (*profiles.pod_rules(), *fleet_profile.fleet_rules())}
PAGES = [page for rule in TABLES.values() for page in rule.documented]
MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(rules.__path__, "bayplan.rules.")
    if not found.ispkg
]


def reasons_in(module):
    """The reasons among the values of a module, also those in tables."""
    for value in vars(module).values():
        values = value.values() if isinstance(value, dict) else [value]
        yield from (each for each in values if isinstance(each, Reason))


def test_each_documented_id_is_unique():
    ids = [page.reason.id for page in PAGES]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_reason_of_a_module_is_documented(module):
    documented = {page.reason for page in PAGES} | {CLAIM_AWAITED}  # another text of claim-missing
    assert set(reasons_in(module)) <= documented


@pytest.mark.parametrize("rule", TABLES.values(), ids=TABLES)
def test_what_a_code_means_is_documented_by_the_rule(rule):
    # Two rules share their codes, and each gives only its own ones.
    siblings = [each for each in TABLES.values() if each.reasons_by_code == rule.reasons_by_code]
    assert set(rule.reasons_by_code) <= {page.reason for each in siblings for page in each.documented}


@pytest.mark.parametrize("rule", TABLES.values(), ids=TABLES)
def test_a_rule_that_rejects_documents_why(rule):
    rejects = rule.reject is not Rule.reject or rule.pre_filter is not Rule.pre_filter
    assert bool(rule.documented) == rejects


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.reason.id)
def test_a_page_says_what_it_means_and_what_to_do(page):
    assert page.means.endswith(".")
    assert page.to_do.endswith(".")


def functions_that_make_reasons(module):
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.FunctionDef):
            calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
            if any(getattr(each.func, "id", "") == "Reason" for each in calls):
                yield f"{module.__name__}.{node.name}"


def test_reasons_are_constants_with_placeholders():
    assert [name for module in MODULES for name in functions_that_make_reasons(module)] == []


def test_the_reasons_of_resources_are_those_documented():
    rule, requests = ResourcesFit(), Requests((("cpu", 1), ("example.com/gpu", 1)))
    state = rule.prepare(requests, PlacementIndex())
    expected = (
        TOO_MANY_PODS,
        INSUFFICIENT.filled(resource="cpu"),
        INSUFFICIENT.filled(resource="example.com/gpu"),
    )
    assert rule.reasons(state, 0b111) == expected


def test_the_message_without_nodes_is_the_documented_one():
    index = PlacementIndex()
    verdicts = filtering.run(situation_of(pod("new"), []).workload, Engine(index, ()))
    assert fit_error.sentence(verdicts, index) == placeable.NO_NODES.text
