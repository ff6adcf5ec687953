"""Real servers for the tests that ask for them; whoever asks is `live`, and runs with `-m live` only."""

import itertools
import os

import pytest

from live import kube_binaries
from live.admin import Admin, SyncAdmin
from live.credentials import USERS, Credentials
from live.karmada import load_karmada_crds
from live.kube_server import KubeServer
from live.proxy import Proxy
from live.scripted_server import ScriptedServer

REAL = frozenset({"kube_server", "new_kube_server"})
NO_SERVER = "no real API server"
MISSING = pytest.StashKey[str]()
NUMBERS = itertools.count(1)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if REAL & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.live)


def pytest_collection_finish(session):
    """Build here what has to be built: inside a test it would count as the test's time."""
    if session.config.option.collectonly or not any(item.get_closest_marker("live") for item in session.items):
        return
    try:
        for name in kube_binaries.PACKAGES:
            kube_binaries.find(name)
    except kube_binaries.UnavailableError as reason:
        session.config.stash[MISSING] = f"{NO_SERVER}: {reason}"


def pytest_terminal_summary(terminalreporter):
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    reasons = [reason for reason in skipped if NO_SERVER in reason]
    if reasons:
        terminalreporter.section("live tests did not run")
        terminalreporter.write_line(f"{len(reasons)} skipped, {reasons[0].removeprefix('Skipped: ')}")


def go_without(reason):
    """Skip what cannot be had; REQUIRE_APISERVER=1 fails instead."""
    if os.environ.get("REQUIRE_APISERVER") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def real_servers(pytestconfig):
    if MISSING in pytestconfig.stash:
        go_without(pytestconfig.stash[MISSING])


@pytest.fixture(scope="session")
def shared_kube_server(real_servers):
    with KubeServer() as server:
        yield server


@pytest.fixture
def kube_server(shared_kube_server):
    """A real API server, one for all tests of a worker; what a test stops or starts there is mended after it."""
    yield shared_kube_server
    shared_kube_server.recover()
    shared_kube_server.clear()


@pytest.fixture
def new_kube_server(real_servers):
    """A function that starts an API server for one test alone: `new_kube_server(Options(high_throughput=True))`."""
    started = []

    def start(options=None):
        started.append(KubeServer(options))
        return started[-1].start()

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def karmada_crds(shared_kube_server):
    try:
        load_karmada_crds(shared_kube_server)
    except kube_binaries.UnavailableError as reason:
        go_without(f"{NO_SERVER} with Karmada's kinds: {reason}")


@pytest.fixture
def karmada_server(karmada_crds, kube_server):
    """`kube_server` with Karmada's kinds; later tests of the worker find them too, but none of their objects."""
    return kube_server


@pytest.fixture
def proxy(kube_server):
    """A bad network in front of `kube_server`, good until told otherwise."""
    with Proxy(kube_server) as proxy:
        yield proxy


@pytest.fixture
def credentials(tmp_path):
    """For servers that are not real: an authority, tokens, kubeconfig files."""
    return Credentials(tmp_path / "credentials", USERS)


@pytest.fixture
def scripted_server(credentials):
    """A server that plays a script, with TLS; the test fails if it was asked for what is not in the script."""
    certificate = credentials.issue("127.0.0.1", common_name="scripted")
    with ScriptedServer(certificate) as server:
        yield server
    assert not server.surprises


@pytest.fixture
async def admin(kube_server):
    """All rights on `kube_server`, for tests that are coroutines."""
    async with Admin.of(kube_server) as admin:
        yield admin


@pytest.fixture
def sync_admin(kube_server):
    """All rights on `kube_server`, for tests that are plain functions."""
    with SyncAdmin.of(kube_server) as admin:
        yield admin


@pytest.fixture
async def namespace(admin):
    """The name of a new namespace."""
    name = f"test-{next(NUMBERS)}"
    await admin.create_namespace(name)
    return name
