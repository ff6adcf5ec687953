import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def source_folder():
    return ROOT / "src"


@pytest.fixture(scope="session")
def installed_wheel(tmp_path_factory):
    """The wheel of the working tree, unpacked as pip does it."""
    folder = tmp_path_factory.mktemp("wheel")
    code = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, folder], cwd=ROOT, capture_output=True, text=True, check=True)
    name = done.stdout.splitlines()[-1]
    installed = folder / "installed"
    zipfile.ZipFile(folder / name).extractall(installed)
    return installed
