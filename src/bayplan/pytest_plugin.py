"""
A pytest plugin, known to pytest wherever Bayplan is installed: the fixture `bayplan_cluster`, what runs.

What it is read from stands in pytest's configuration:

    [tool.pytest.ini_options]
    bayplan_state = ["tests/cluster.json"]

Everything else is imported when a test asks for the fixture: other tests do not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pathlib

    from bayplan.library.cluster import Cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting."""
    parser.addini("bayplan_state", "Files and directories of what runs, such as the output of kubectl get.", "paths")


@pytest.fixture(scope="session")
def bayplan_cluster(pytestconfig: pytest.Config) -> Cluster:
    """What runs, from the files of the setting `bayplan_state`; read once for all tests."""
    from bayplan.library.cluster import Cluster

    paths: list[pathlib.Path] = pytestconfig.getini("bayplan_state")
    if not paths:
        raise pytest.UsageError("bayplan_cluster needs the setting bayplan_state: files of what runs")
    return Cluster.from_files(*paths)
