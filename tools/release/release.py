"""
Prepares a release: everything short of publishing it.

    python tools/release/release.py 0.1.1 --base-digest sha256:… [--repository https://host/group/bayplan]

In a clean clone, it sets the version everywhere, moves the fragments of changelog.d/ into CHANGELOG.md, commits and
tags; then it builds into dist/: wheel and sdist (twice, to see that they are the same), the chart, the Dockerfile with
its base image by digest, bill of materials and licences, krew's manifest, and the checksums of all. Nothing leaves this
machine; what is left to be done is printed.
"""

import argparse
import datetime as dt
import gzip
import hashlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Where the version is written. Decisions and the changelog are history and keep theirs.
PLACES = (
    "pyproject.toml", "src/bayplan/__init__.py", "charts/bayplan/Chart.yaml", "deploy/*/*.yaml", "docs/*.md",
    "docs/[!d]*/*.md", "examples/*/README.md", "tests/cli/test_program.py", "tests/auditing/golden/*", "ci/*",
)  # fmt: skip


class ReleaseError(Exception):
    """Why nothing was released."""


def run(*command, **options):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def current():
    return re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)[1]


def check(asked):
    """Raise ReleaseError with everything that is in the way."""
    problems = []
    if not VERSION.fullmatch(asked.version):
        problems.append(f"expected a version such as 0.2.0, got {asked.version!r}")
    elif numbers(asked.version) < numbers(current()):
        problems.append(f"{asked.version} is lower than {current()}")
    if not DIGEST.fullmatch(asked.base_digest):
        problems.append(f"--base-digest: expected sha256: and 64 digits, got {asked.base_digest!r}")
    if asked.repository and not re.fullmatch(r"https://[^\s\"]+[^/]", asked.repository):
        problems.append(f"--repository: expected https://… without a slash at the end, got {asked.repository!r}")
    minor = asked.version.rpartition(".")[0]
    if f"| {minor} |" not in (ROOT / "docs" / "reference" / "versions.md").read_text("utf-8"):
        problems.append(f"docs/reference/versions.md does not say what {minor} supports")
    if run("git", "status", "--porcelain").strip():
        problems.append("the work tree has changes")
    if run("git", "tag", "--list", f"v{asked.version}").strip():
        problems.append(f"there is a tag v{asked.version}")
    if not fragments():
        problems.append("changelog.d has nothing to release")
    if problems:
        raise ReleaseError("\n".join(problems))


def numbers(version):
    return tuple(map(int, version.split(".")))


def fragments():
    return sorted(path for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md")


def set_version(old, new):
    pattern = re.compile(rf"(?<![\d.]){re.escape(old)}(?![\d.]*\d)")
    for path in sorted({path for place in PLACES for path in ROOT.glob(place) if path.is_file()}):
        text = path.read_text("utf-8")
        changed = pattern.sub(new, text)
        if changed != text:
            path.write_text(changed, "utf-8")
    run(sys.executable, "tools/chart/make_chart.py")


def set_repository(url):
    """Name the repository in the metadata, if it is not there yet."""
    path = ROOT / "pyproject.toml"
    text = path.read_text("utf-8")
    if url and "[project.urls]" not in text:
        urls = f'[project.urls]\nRepository = "{url}"\nChangelog = "{url}/blob/main/CHANGELOG.md"\n\n'
        path.write_text(text.replace("[project.scripts]", f"{urls}[project.scripts]"), "utf-8")


def notes():
    """The sentences of all fragments, as the new section of the changelog has them."""
    return "".join(path.read_text("utf-8").strip() + "\n" for path in fragments())


def move_fragments(version, date):
    path = ROOT / "CHANGELOG.md"
    head, mark, history = path.read_text("utf-8").partition("\n## ")
    section = f"\n## {version} ({date})\n\n{notes()}"
    path.write_text(head + section + mark + history, "utf-8")
    for one in fragments():
        one.unlink()


def commit(version):
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "--message", f"Version {version}")
    run("git", "tag", "--annotate", f"v{version}", "--message", f"Bayplan {version}")


def build_packages():
    """Build wheel and sdist twice; ReleaseError if they differ."""
    with tempfile.TemporaryDirectory() as folder:
        for target in (DIST, pathlib.Path(folder)):
            run(sys.executable, "-m", "hatchling", "build", "-d", str(target))
        for path in pathlib.Path(folder).iterdir():
            if path.read_bytes() != (DIST / path.name).read_bytes():
                raise ReleaseError(f"{path.name} differs when it is built again")


def build_dockerfile(digest):
    text = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
    pinned = re.sub(r"^(ARG BASE=\S+)$", rf"\1@{digest}", text, flags=re.MULTILINE)
    (DIST / "Dockerfile").write_text(pinned, "utf-8")


def packed(target, files):
    """Write a .tar.gz with the same bytes for the same files: name in the archive → content and mode."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    target.write_bytes(gzip.compress(plain.getvalue(), mtime=0))


def build_chart(version):
    folder = ROOT / "charts" / "bayplan"
    files = {
        path.relative_to(folder.parent).as_posix(): (path.read_bytes(), 0o644)
        for path in folder.rglob("*")
        if path.is_file()
    }
    packed(DIST / f"bayplan-chart-{version}.tgz", files)


def build_krew(version, repository):
    launcher = (ROOT / "ci" / "krew" / "kubectl-bayplan").read_bytes()
    archive = DIST / f"kubectl-bayplan-{version}.tar.gz"
    packed(archive, {"kubectl-bayplan": (launcher, 0o755), "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644)})
    manifest = (ROOT / "ci" / "krew" / "bayplan.yaml.in").read_text("utf-8")
    values = {"VERSION": version, "SHA256": hashlib.sha256(archive.read_bytes()).hexdigest(), "REPOSITORY": repository}
    for name, value in values.items():
        manifest = manifest.replace(f"@{name}@", value)
    (DIST / "krew.yaml").write_text(manifest, "utf-8")


def build(asked):
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    build_packages()
    build_dockerfile(asked.base_digest)
    build_chart(asked.version)
    build_krew(asked.version, asked.repository or "https://example.invalid/bayplan")
    run(sys.executable, "tools/release/sbom.py", str(DIST))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(sums), "utf-8")


NEXT = """\
Version {version} is committed, tagged and built in dist/. To publish it:
  make check test test-live
  git push origin HEAD v{version}
  twine upload dist/bayplan-{version}*
  docker build -f dist/Dockerfile -t REGISTRY/bayplan:{version} . && docker push REGISTRY/bayplan:{version}
  helm push dist/bayplan-chart-{version}.tgz oci://REGISTRY/charts
  attach dist/* to the release, and send dist/krew.yaml to krew's index
To take it back: git tag -d v{version} && git reset --hard HEAD~1
"""


def main(*words):
    parser = argparse.ArgumentParser(description="Prepare a release: everything short of publishing it.")
    parser.add_argument("version")
    parser.add_argument(
        "--base-digest",
        required=True,
        help="digest of the base image: docker buildx imagetools inspect python:3.12-slim",
    )
    parser.add_argument(
        "--repository", default="", help="address of the repository, for the metadata and krew's manifest"
    )
    parser.add_argument("--date", default=dt.datetime.now(dt.UTC).date().isoformat(), help="date in the changelog")
    asked = parser.parse_args(words)
    try:
        check(asked)
        set_version(current(), asked.version)
        set_repository(asked.repository)
        move_fragments(asked.version, asked.date)
        commit(asked.version)
        build(asked)
    except ReleaseError as error:
        sys.stderr.write(f"not released: {error}\n")
        return 1
    sys.stdout.write(NEXT.format(version=asked.version))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
