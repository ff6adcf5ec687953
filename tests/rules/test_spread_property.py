"""The properties that spread constraints need."""

import pytest

from bayplan.rules.spread_property import SpreadProperty
from rules.shorthand import binding, run_fleet

PROVIDER, REGION, ZONES = (f"UU cluster(s) did not have {name} property" for name in ("provider", "region", "zones"))


@pytest.mark.parametrize(
    "by, rejected",
    [
        ([], {}),
        (["cluster"], {}),
        (["region"], {"bare": REGION, "p": REGION}),
        (["provider"], {"bare": PROVIDER, "r": PROVIDER, "z": PROVIDER}),
        (["zone"], {"bare": ZONES, "p": ZONES, "r": ZONES}),
        (["cluster", "region"], {"bare": REGION, "p": REGION}),
        (["region", "zone"], {"bare": REGION, "p": REGION, "r": ZONES}),  # the first that is missing
        (["zone", "region"], {"bare": ZONES, "p": ZONES, "r": ZONES}),
    ],
)
def test_properties_for_spread_constraints(by, rejected):
    constraints = [{"spreadByField": field, "minGroups": 1, "maxGroups": 1} for field in by]
    on = "bare; p provider=aws; r region=eu; z region=eu zones=a"
    asked = binding("web", runs="bare", placement={"spreadConstraints": constraints})  # which is not exempt
    assert run_fleet(SpreadProperty(), asked, on).rejected == rejected


@pytest.mark.parametrize("semantics, rejected", [
    ("upstream", {}),
    ("design", {"c2": "UU cluster(s) did not have label rack"}),
])  # fmt: skip
def test_spreading_by_label(semantics, rejected):
    asked = binding("web", placement={"spreadConstraints": [{"spreadByLabel": "rack", "minGroups": 1, "maxGroups": 1}]})
    assert run_fleet(SpreadProperty(), asked, "c1 rack=r; c2", semantics=semantics).rejected == rejected


def test_evidence_names_the_constraint():
    asked = binding("web", placement={"spreadConstraints": [{"spreadByField": "zone", "minGroups": 1, "maxGroups": 1}]})
    (failure,) = run_fleet(SpreadProperty(), asked, "c1").failures["c1"]
    assert failure.term == "spreadConstraints zone"
