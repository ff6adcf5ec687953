"""
Bayplan on a fresh machine: the steps of the Dockerfile in an empty directory, and what they leave behind.

No server is needed, but package registries are: these tests run with the live ones.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import pytest

import test_examples

ROOT = pathlib.Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
# That of the operator needs a cluster: test_tutorial.py follows it.
TUTORIALS = sorted(
    path.relative_to(ROOT) for path in ROOT.glob("docs/tutorial/*.md") if "```console" in path.read_text("utf-8")
)
NOBODY = 65532  # the user of the image

pytestmark = pytest.mark.live


def instructions():
    """The instructions of the Dockerfile, each on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


def environment(folder, **more):
    """Nothing of this one but what pip needs to find its registry."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_")) or name.lower().endswith("_proxy")
    }
    return {**kept, "PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder / "home"), "LANG": "C.UTF-8", **more}


@pytest.fixture(scope="module")
def image():
    """A folder in which the Dockerfile was carried out: absolute paths are below it, and `python` is the interpreter's own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bayplan-image-"))
    folder.chmod(0o755)  # for a user without rights
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(pathlib.Path(sys._base_executable).resolve())
    workdir = folder
    for word, rest in instructions():
        if word == "WORKDIR":
            workdir = folder / rest.strip("/")
            workdir.mkdir(parents=True)
        elif word == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            for source in sources:
                at = workdir / target
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, at, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    at = at / pathlib.Path(source).name if target.endswith("/") else at
                    at.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(ROOT / source, at)
        elif word == "RUN":
            script = re.sub(r"(?<![\w.])/(opt|wheels)\b", rf"{folder}/\1", rest).replace("--no-cache-dir", "")
            done = subprocess.run(
                ["sh", "-ec", script], cwd=workdir, env=environment(folder), capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
    yield folder
    shutil.rmtree(folder)


def files(folder):
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def as_nobody(python):
    """How to run a process as the user of the image, if this user may become it and it may run this Python."""
    how = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        subprocess.run([python, "-c", ""], cwd="/", env={}, check=True, capture_output=True, **how)
    except (OSError, subprocess.CalledProcessError):
        return {}
    return how


def test_the_image_places_pods_as_a_user_without_rights_and_writes_nothing(image, tmp_path_factory):
    example = image / "example"
    shutil.copytree(ROOT / "examples" / "01-first-pod", example)
    settings = {word: rest for word, rest in instructions() if word in {"ENV", "ENTRYPOINT", "USER"}}
    assert settings["USER"] == f"{NOBODY}:{NOBODY}"
    variables = dict(one.split("=", 1) for one in shlex.split(settings["ENV"]))
    path = variables.pop("PATH").replace("$PATH", "/usr/bin:/bin").replace("/opt/", f"{image}/opt/")
    before = files(image / "opt")
    done = subprocess.run(
        ["bayplan", "place", "-f", example],
        cwd="/",
        env=environment(image, **variables, PATH=path),
        capture_output=True,
        text=True,
        check=False,
        **as_nobody(image / "opt" / "bayplan" / "bin" / "python"),
    )
    assert "shop       web-1  node-a1" in done.stdout, done.stderr
    assert done.returncode == 1  # the fourth pod fits nowhere
    assert files(image / "opt") == before
    assert not (image / "home").exists()


def test_the_image_has_the_pinned_versions_and_no_tools(image):
    python = image / "opt" / "bayplan" / "bin" / "python"
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    ).stdout
    installed = {line.partition("==")[0].lower().replace("_", "-") for line in listed.split()}
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "deploy" / "requirements.txt").read_text("utf-8"), re.MULTILINE))
    assert installed <= {*pinned, "bayplan", "pip", "setuptools"}
    checked = subprocess.run([python, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("page", TUTORIALS, ids=str)
def test_a_tutorial_is_followed_literally(image, page, tmp_path):
    """Every command of the page in its order, in a folder with the examples, with the installed Bayplan."""
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    path = f"{image}/opt/bayplan/bin:/usr/bin:/bin"
    settings = {
        "PATH": path,
        "HOME": str(tmp_path),
        "COLUMNS": "80",
        "PYTHONUTF8": "1",
        "SOURCE_DATE_EPOCH": "1790000000",
    }
    for block in test_examples.blocks(page, "console"):
        shown, code = "", 0
        for command in [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]:
            done = subprocess.run(
                ["sh", "-c", f"(exit {code})\n{command}"],
                cwd=tmp_path,
                env=settings,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            shown, code = f"{shown}$ {command}\n{done.stdout}", done.returncode
        assert shown == block


def without_a_network():
    """The words before a command that take the network from it; none where this is not allowed."""
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    allowed = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if allowed else []


def test_it_is_installed_from_a_wheelhouse_without_a_network(image, tmp_path):
    """As docs/how-to/install-without-a-network.md says."""
    python = image / "opt" / "bayplan" / "bin" / "python"
    requirements = ROOT / "deploy" / "requirements.txt"
    download = [
        python,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--require-hashes",
        "-r",
        requirements,
        "-d",
        tmp_path / "wheelhouse",
    ]
    done = subprocess.run(download, capture_output=True, text=True, check=False, env=environment(image))
    assert done.returncode == 0, done.stderr
    (wheel,) = (image / "wheels").iterdir()
    shutil.copy(wheel, tmp_path / "wheelhouse")
    subprocess.run([pathlib.Path(sys._base_executable).resolve(), "-m", "venv", tmp_path / "venv"], check=True)
    isolated = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_CONFIG_FILE": os.devnull,
    }
    install = [
        tmp_path / "venv/bin/pip",
        "install",
        "--quiet",
        "--no-index",
        "--find-links",
        tmp_path / "wheelhouse",
        "bayplan",
    ]
    offline = without_a_network()
    done = subprocess.run([*offline, *install], capture_output=True, text=True, check=False, env=isolated)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [*offline, tmp_path / "venv/bin/bayplan", "validate", "-f", ROOT / "docs/tutorial/web-small.yaml"],
        capture_output=True,
        text=True,
        check=False,
        env=isolated,
    )
    assert shown.stdout == "1 object in 1 file: all valid\n", shown.stderr
