"""The release script in a clone: the version everywhere, the changelog, and all that is published, with its checksums."""

import hashlib
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest
import yaml

from test_package import copied

ROOT = pathlib.Path(__file__).parent.parent
DIGEST = f"sha256:{'a' * 64}"
VERSION = "0.1.1"
REPOSITORY = "https://code.example/group/bayplan"


def git(folder, *words):
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def release(folder, *words):
    command = [sys.executable, "tools/release/release.py", *words]
    identity = {
        f"GIT_{who}_{what}": f"test@{who}".lower() for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "PYTHONWARNINGS": "", **identity}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = copied(tmp_path_factory.mktemp("release") / "clone")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "All that is there")
    return folder


@pytest.fixture(scope="module")
def released(clone):
    """The clone after the release; bad words before it changed nothing."""
    for words, complaint in (
        (("0.2", "--base-digest", DIGEST), "expected a version such as"),
        (("0.0.9", "--base-digest", DIGEST), "is lower than"),
        (("0.2.0", "--base-digest", DIGEST), "does not say what 0.2 supports"),
        ((VERSION, "--base-digest", "sha256:12"), "--base-digest"),
        ((VERSION, "--base-digest", DIGEST, "--repository", "code.example"), "--repository"),
    ):
        done = release(clone, *words)
        assert done.returncode == 1
        assert complaint in done.stderr
    (clone / "left.txt").write_text("")
    assert "the work tree has changes" in release(clone, VERSION, "--base-digest", DIGEST).stderr
    (clone / "left.txt").unlink()
    assert git(clone, "status", "--porcelain") == git(clone, "tag") == ""
    done = release(clone, VERSION, "--base-digest", DIGEST, "--repository", REPOSITORY, "--date", "2026-12-01")
    assert done.returncode == 0, done.stderr
    return clone, done.stdout


def test_the_release_is_committed_and_tagged_and_nothing_else_is_changed(released):
    clone, said = released
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "log", "-1", "--format=%s").strip() == f"Version {VERSION}"
    assert git(clone, "tag", "--points-at", "HEAD").strip() == f"v{VERSION}"
    for step in ("git push", "twine upload", "docker push", "helm push"):
        assert step in said


def test_the_old_version_is_nowhere_left(released):
    """Beside pins of other packages and what is history."""
    clone, _ = released
    old = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    written = re.compile(rf"(?<![\d.]){re.escape(old)}(?!\.?\d)")
    others = ("docs/decisions/", "requirements.txt", "deploy/requirements.txt", "tools/kube/", "CHANGELOG.md")
    names = [name for name in git(clone, "ls-files").split("\n") if name and not name.startswith(others)]
    texts = {name: (clone / name).read_bytes().decode(errors="replace") for name in names}
    assert [name for name, text in texts.items() if written.search(text)] == []


def test_the_changelog_has_every_sentence(released):
    clone, _ = released
    changelog = (clone / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## {VERSION} (2026-12-01)\n" in changelog
    sentences = [
        line for path in ROOT.glob("changelog.d/0*.md") for line in path.read_text("utf-8").strip().splitlines()
    ]
    assert sentences
    assert [line for line in sentences if line not in changelog] == []
    assert [path.name for path in (clone / "changelog.d").iterdir()] == ["README.md"]


def test_everything_that_is_published_is_there_with_its_checksum(released):
    clone, _ = released
    dist = clone / "dist"
    names = {path.name for path in dist.iterdir()}
    assert names == {
        f"bayplan-{VERSION}-py3-none-any.whl", f"bayplan-{VERSION}.tar.gz", f"bayplan-chart-{VERSION}.tgz", "Dockerfile",
        f"bayplan-{VERSION}.cdx.json", "LICENCES.md", f"kubectl-bayplan-{VERSION}.tar.gz", "krew.yaml", "SHA256SUMS",
    }  # fmt: skip
    sums = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((dist / name).read_bytes()).hexdigest() for name in names - {"SHA256SUMS"}}
    assert f"ARG BASE=python:3.12-slim@{DIGEST}\n" in (dist / "Dockerfile").read_text()
    assert DIGEST not in (clone / "deploy" / "Dockerfile").read_text()


def test_the_metadata_has_links_that_work_elsewhere(released):
    clone, _ = released
    with zipfile.ZipFile(clone / "dist" / f"bayplan-{VERSION}-py3-none-any.whl") as wheel:
        metadata = wheel.read(f"bayplan-{VERSION}.dist-info/METADATA").decode()
    head, _, description = metadata.partition("\n\n")
    assert f"Project-URL: Repository, {REPOSITORY}\n" in head
    assert description.startswith("# Bayplan\n")
    assert re.findall(r"\]\((?!https://)[^)]*\)", description) == []


def test_the_chart_and_krews_manifest_are_of_this_version(released):
    clone, _ = released
    with tarfile.open(clone / "dist" / f"bayplan-chart-{VERSION}.tgz") as archive:
        names = archive.getnames()
        chart = yaml.safe_load(archive.extractfile("bayplan/Chart.yaml"))
    assert {"bayplan/values.yaml", "bayplan/values.schema.json", "bayplan/templates/deployment.yaml"} <= set(names)
    assert chart["version"] == chart["appVersion"] == VERSION
    manifest = yaml.safe_load((clone / "dist" / "krew.yaml").read_text())
    (platform,) = manifest["spec"]["platforms"]
    archive = clone / "dist" / platform["uri"].rpartition("/")[2]
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert platform["uri"].startswith(REPOSITORY)
    with tarfile.open(archive) as packed:
        assert {one["from"] for one in platform["files"]} == set(packed.getnames())
        assert packed.getmember(platform["bin"]).mode == 0o755


def test_the_templates_for_issues_can_be_read():
    for path in ROOT.glob(".github/ISSUE_TEMPLATE/*.yml"):
        content = yaml.safe_load(path.read_text("utf-8"))
        assert content.get("body") or path.name == "config.yml"
