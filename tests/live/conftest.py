"""Real servers for the tests that request them. Such tests are marked `live` and run with `-m live` only."""

import contextlib
import itertools
import os

import pytest

from live import kube_binaries, tools
from live.admin import Admin, SyncAdmin
from live.credentials import USERS, Credentials
from live.fleet_user import FleetUser
from live.karmada import load_karmada_crds
from live.karmada_control_plane import ControlPlane
from live.kube_server import KubeServer, Options
from live.proxy import Proxy
from live.scripted_server import ScriptedServer
from live.shipped import Shipped

OF_KARMADA = frozenset({"karmada"})
TOOLS = {"helm": kube_binaries.helm, "promtool": kube_binaries.promtool}  # fixtures of their names
REAL = frozenset({"real_servers", "kube_server", "new_kube_server", "released_kube_server", "karmada", *TOOLS})
NO_SERVER = "no real API server"
MISSING = pytest.StashKey[str]()
NUMBERS = itertools.count(1)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    for item in items:
        if REAL & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.live)


def pytest_collection_finish(session):
    """Build missing servers here: inside a test the build would count towards its timeout."""
    if session.config.option.collectonly or not any(item.get_closest_marker("live") for item in session.items):
        return
    try:
        for name in kube_binaries.PACKAGES:
            kube_binaries.find(name)
        if any(OF_KARMADA & set(getattr(item, "fixturenames", ())) for item in session.items):
            for name in kube_binaries.KARMADA_PACKAGES:
                kube_binaries.find_karmada(name)
        for name, build in TOOLS.items():
            if any(name in getattr(item, "fixturenames", ()) for item in session.items):
                build()
    except kube_binaries.UnavailableError as reason:
        session.config.stash[MISSING] = f"{NO_SERVER}: {reason}"


def pytest_terminal_summary(terminalreporter):
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    reasons = [reason for reason in skipped if NO_SERVER in reason]
    if reasons:
        terminalreporter.section("live tests did not run")
        terminalreporter.write_line(f"{len(reasons)} skipped, {reasons[0].removeprefix('Skipped: ')}")


def skip_or_fail(reason):
    """Skip the test because a server is unavailable; REQUIRE_APISERVER=1 fails it instead."""
    if os.environ.get("REQUIRE_APISERVER") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def real_servers(pytestconfig):
    if MISSING in pytestconfig.stash:
        skip_or_fail(pytestconfig.stash[MISSING])


@pytest.fixture(scope="session")
def helm(real_servers, tmp_path_factory):
    """A function that runs Helm with its settings in a folder of its own, and returns its CompletedProcess."""
    return tools.Helm(kube_binaries.helm(), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def promtool(real_servers):
    """The path of promtool."""
    return kube_binaries.promtool()


@pytest.fixture(scope="session")
def shared_kube_server(real_servers):
    with KubeServer() as server:
        yield server


@pytest.fixture(scope="session")
def released_kube_server(real_servers):
    """A function: an API server of another release, if it was built: `make kube-servers VERSION=1.37` builds it."""
    with contextlib.ExitStack() as started:
        servers = {}

        def start(version):
            if not kube_binaries.is_server_built("kube-apiserver", version):
                release = kube_binaries.RELEASES[version]
                pytest.skip(f"left out: kube-apiserver {release} is not built (make kube-servers VERSION={version})")
            if version not in servers:
                servers[version] = started.enter_context(KubeServer(Options(version=version)))
            return servers[version]

        yield start


@pytest.fixture
def kube_server(shared_kube_server):
    """A real API server, shared by all tests of a worker; it is restored after each test."""
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
        skip_or_fail(f"{NO_SERVER} with Karmada's kinds: {reason}")


@pytest.fixture
def karmada_server(karmada_crds, kube_server):
    """`kube_server` with Karmada's kinds, which stay for later tests of the worker; their objects are deleted."""
    return kube_server


@pytest.fixture(scope="session")
def shared_karmada(real_servers):
    with ControlPlane() as control_plane:
        yield control_plane


@pytest.fixture
def karmada(shared_karmada):
    """A real Karmada control plane with two members, shared by the tests of a worker; what a test stops is restarted."""
    yield shared_karmada
    shared_karmada.recover()


@pytest.fixture
async def fleet(karmada, tmp_path):
    """The control plane with a namespace of its own, and what tests do with it; see FleetUser."""
    async with FleetUser.of(karmada, f"fleet-{next(NUMBERS)}") as user:
        yield user


@pytest.fixture
def proxy(kube_server):
    """A proxy in front of `kube_server`, without faults until the test sets some."""
    with Proxy(kube_server) as proxy:
        yield proxy


@pytest.fixture
def credentials(tmp_path):
    """An authority, tokens and kubeconfig files, for scripted servers."""
    return Credentials(tmp_path / "credentials", USERS)


@pytest.fixture
def scripted_server(credentials):
    """A server that plays a script, with TLS; the test fails on a request that is not in the script."""
    certificate = credentials.issue("127.0.0.1", common_name="scripted")
    with ScriptedServer(certificate) as server:
        yield server
    assert not server.surprises


@pytest.fixture
async def admin(kube_server):
    """A client of `kube_server` with all rights, for coroutine tests."""
    async with Admin.of(kube_server) as admin:
        yield admin


@pytest.fixture
def sync_admin(kube_server):
    """A client of `kube_server` with all rights, for synchronous tests."""
    with SyncAdmin.of(kube_server) as admin:
        yield admin


@pytest.fixture
async def namespace(admin):
    """The name of a new namespace."""
    name = f"test-{next(NUMBERS)}"
    await admin.create_namespace(name)
    return name


@pytest.fixture
async def apply(kube_server, admin, tmp_path):
    """Applies manifests of `deploy/`; see Shipped."""
    shipped = Shipped(kube_server, admin, tmp_path)
    yield shipped
    await shipped.remove()
