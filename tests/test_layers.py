"""Imports point downwards only, and the pure layers import nothing that does input or output."""

import ast
import pathlib

import pytest

SOURCE = pathlib.Path(__file__).parent.parent / "src"
PACKAGE = "bayplan"

# From the bottom up: a unit imports itself and units on earlier lines, never other units on its own line.
# `explaining` is two units: counting reasons and searching for fixes, and the explanation, which calls `schedule`.
LAYERS = (
    ("errors", "caching"),
    ("wire",),
    ("model",),
    ("validating",),
    ("mapping",),
    ("controllers", "indexing"),
    ("rules",),
    ("engine",),
    ("assigning", "explaining"),
    ("schedule_pod", "schedule_binding"),
    ("explaining.explanation", "preempting", "grouping"),
    ("queueing",),
    ("placing",),
    ("enforcing", "auditing"),
    ("kube_api", "reading", "serving"),
    ("writing",),
    ("watching",),
    ("live", "webhook"),
    ("simulating",),
    ("library",),
    ("web",),
    ("cli", "testing", "pytest_plugin"),
    ("__main__",),
)
LEVELS = {unit: level for level, units in enumerate(LAYERS) for unit in units}

# From `model` to `enforcing`: no files, network, clock, randomness or async.
PURE = LEVELS["enforcing"]
OUTSIDE = frozenset({
    "aiohttp", "asyncio", "click", "datetime", "http", "io", "mmap", "os", "pathlib", "random", "rich", "secrets",
    "shutil", "socket", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "yaml",
})  # fmt: skip
# The text of an annotation is YAML, which validation parses; comparing two written times needs no clock.
ALLOWED = {
    "bayplan.validating.yaml_text": {"yaml"},
    "bayplan.mapping.bindings": {"datetime"},
    "bayplan.controllers.binding_triggers": {"datetime"},
}

MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}


def unit_of(module):
    """The unit a module of ours belongs to; empty for the package itself, which only names the library."""
    name = module.removeprefix(PACKAGE).lstrip(".")
    return name if name in LEVELS else name.partition(".")[0]


def imports_of(module):
    """Everything a module imports: at its top, for types only, or inside a function."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} has a relative import, which hides the layer"
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                yield deeper if deeper in MODULES else node.module


def own_imports(module):
    return sorted({name for name in imports_of(module) if name.partition(".")[0] == PACKAGE})


def test_every_module_has_a_layer_and_every_layer_a_module():
    units = {unit_of(module) for module in MODULES} - {""}
    assert units == LEVELS.keys()


def test_the_page_shows_the_layers():
    page = (SOURCE.parent / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    shown = page.partition("never other units on the same line:\n\n")[2].partition("\n\n")[0]
    lines = [line.replace(" (all but explanation)", "").strip().split(", ") for line in shown.splitlines()]
    assert lines == [list(units) for units in LAYERS if units != ("__main__",)]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_downwards(module):
    unit = unit_of(module)
    wrong = [
        name
        for name in own_imports(module)
        # The package itself names the library, and imports it when a name is first used.
        if unit_of(name) not in ("", unit) and LEVELS[unit_of(name)] >= LEVELS.get(unit, LEVELS["cli"])
    ]
    assert not wrong, f"{module} is not above what it imports"


@pytest.mark.parametrize("module", [m for m in sorted(MODULES) if LEVELS.get(unit_of(m), PURE) <= PURE])
def test_the_pure_layers_import_no_input_or_output(module):
    outside = {name.partition(".")[0] for name in imports_of(module)} & OUTSIDE
    assert outside <= ALLOWED.get(module, set())


@pytest.mark.parametrize("module", [m for m in ALLOWED if "datetime" in ALLOWED[m]])
def test_written_times_are_compared_without_a_clock(module):
    attributes = {
        node.attr
        for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert not attributes & {"now", "utcnow", "today"}


def test_the_queue_and_the_controllers_are_pure():
    assert max(LEVELS["queueing"], LEVELS["controllers"]) <= PURE


def test_validating_needs_no_index():
    above_the_model = {
        f"{module} imports {name}"
        for module in MODULES
        if unit_of(module) == "validating"
        for name in own_imports(module)
        if unit_of(name) not in ("errors", "wire", "model", "validating")
    }
    assert not above_the_model


def test_preemption_knows_no_rule():
    known = {name for module in MODULES if unit_of(module) == "preempting" for name in own_imports(module)}
    assert {name for name in known if unit_of(name) == "rules"} == {"bayplan.rules.evictions"}


def test_the_layers_distinguish_the_units():
    assert LEVELS[unit_of("bayplan.explaining.fit_error")] < LEVELS["schedule_pod"]
    assert LEVELS[unit_of("bayplan.explaining.explanation")] > LEVELS["schedule_pod"]
    assert "bayplan.schedule_pod" in own_imports("bayplan.explaining.explanation")
    assert "bayplan.library.fleet" in own_imports("bayplan.cli.loading")  # found inside a function
