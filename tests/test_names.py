"""
One class name means one class, so that a search for it finds one thing.

A public name is what people type: it may be that of an API object (Cluster), or of the value inside that it shows.
"""

import ast
import pathlib
from collections import defaultdict

import bayplan

PUBLIC = frozenset(bayplan.__all__)
SOURCE = pathlib.Path(__file__).parent.parent / "src"


def test_class_names_are_unique():
    modules_by_name = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules_by_name[node.name].append(str(path.relative_to(SOURCE)))
    assert len(modules_by_name) > 400  # the package was found
    several = {
        name: modules
        for name, modules in modules_by_name.items()
        if len([one for one in modules if name not in PUBLIC or not one.startswith("bayplan/library/")]) > 1
    }
    assert several == {}
