"""Wheel and sdist: the same bytes from the same source, complete, and with a bill of materials that says what is installed."""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parent.parent
REQUIREMENTS = (ROOT / "deploy" / "requirements.txt").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tracked():
    """The files of the tree as a clone has them."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def copied(folder):
    """The tree in another place, with other times."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def built(source, folder, *kinds):
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *(f"-t{kind}" for kind in kinds)]
    done = subprocess.run(
        command, cwd=source, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONWARNINGS": ""}
    )
    assert done.returncode == 0, done.stderr
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Wheel and sdist, built twice: from two copies of the tree."""
    found = []
    for number in range(2):
        folder = tmp_path_factory.mktemp(f"tree-{number}")
        found.append(built(copied(folder / "source"), folder / "dist", "wheel", "sdist"))
    return found


def test_two_builds_have_the_same_bytes(packages):
    first, second = (
        {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in one.items()} for one in packages
    )
    assert first == second
    version = PROJECT["version"]
    assert set(first) == {f"bayplan-{version}-py3-none-any.whl", f"bayplan-{version}.tar.gz"}


def test_the_sdist_makes_the_same_wheel(packages, tmp_path):
    (sdist,) = (path for name, path in packages[0].items() if name.endswith(".tar.gz"))
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again = built(source, tmp_path / "dist", "wheel")
    for name, path in again.items():
        assert path.read_bytes() == packages[0][name].read_bytes()


def test_the_sdist_has_what_a_clone_has(packages):
    """Beside what only this project's own development needs."""
    (sdist,) = (path for name, path in packages[0].items() if name.endswith(".tar.gz"))
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    left_out = re.compile(r"\.(ci|git|github|gitlab)|\.gitignore")
    assert {name for name in tracked() if not left_out.match(name)} - names == set()


def test_the_wheel_has_the_package_and_nothing_else(packages):
    (wheel,) = (path for name, path in packages[0].items() if name.endswith(".whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    expected = {name.removeprefix("src/") for name in tracked() if name.startswith("src/")}
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert f"Version: {PROJECT['version']}" in metadata


# The image


def test_the_dockerfile_copies_what_exists_and_is_not_ignored():
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignore[0] == "*"
    kept = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    sources = {word for line in copies for word in line.split()}
    assert sources == kept
    assert all((ROOT / word).exists() for word in sources)


def test_the_image_runs_as_a_user_without_rights_from_a_pinned_base():
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.search(r"^ARG BASE=python:3\.\d+-slim$", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["65532:65532"]
    for line in re.findall(r"pip install .*", DOCKERFILE):
        assert "--require-hashes" in line or "--no-deps /wheels" in line


@pytest.mark.parametrize("name", ["build-requirements.txt", "requirements.txt"])
def test_the_image_has_the_versions_that_are_tested(name):
    ours = set(re.findall(r"^(\S+==[^\s;]+)", (ROOT / "deploy" / name).read_text("utf-8"), re.MULTILINE))
    assert ours
    assert ours <= set(re.findall(r"^(\S+==[^\s;]+)", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE))


# The bill of materials


def test_the_bill_of_materials_has_every_pinned_package_with_its_licence():
    sbom = load(ROOT / "tools" / "release" / "sbom.py")
    found = sbom.bill(REQUIREMENTS)
    listed = {f"{one['name']}=={one['version']}" for one in found["components"]}
    assert listed == set(re.findall(r"^([\w.-]+==[^\s;\\]+)", REQUIREMENTS, re.MULTILINE))
    assert not [one["name"] for one in found["components"] if "licenses" not in one]
    hashes = [
        one["value"] for part in found["components"] for one in part["properties"] if one["name"] == "bayplan:sha256"
    ]
    assert len(hashes) == REQUIREMENTS.count("--hash=sha256:")
    assert json.dumps(found) == json.dumps(sbom.bill(REQUIREMENTS))
    assert {one["bom-ref"] for one in found["components"]} == set(found["dependencies"][0]["dependsOn"])


def test_every_dependency_is_pinned():
    pinned = {name for name, *_ in load(ROOT / "tools" / "release" / "sbom.py").pins(REQUIREMENTS)}
    named = {re.split(r"[<>=!\[ ]", one)[0].lower().replace("_", "-") for one in PROJECT["dependencies"]}
    assert named <= pinned
    for licence in load(ROOT / "tools" / "release" / "sbom.py").licences(REQUIREMENTS).splitlines():
        assert "GPL" not in licence
