"""Fixtures that write a file and read it."""

import textwrap

import pytest

from bayplan import errors
from bayplan.reading import documents, files, yaml_documents


@pytest.fixture
def write(tmp_path):
    """Write a file and give its path."""

    def write(text, name="a.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
        return str(path)

    return write


@pytest.fixture
def faults_of(write, tmp_path):
    """The faults of a text, as lines without the folder."""

    def faults_of(text, name="a.yaml", **options):
        with pytest.raises(errors.InputError) as caught:
            files.load(files.ReadOptions([write(text, name)], **options))
        return [str(fault).replace(f"{tmp_path}/", "") for fault in caught.value.faults]

    return faults_of


@pytest.fixture
def load(write):
    def load(text, name="a.yaml", **options):
        return files.load(files.ReadOptions([write(text, name)], **options))

    return load


@pytest.fixture
def values():
    """The values of every document of a YAML text; faults as they are."""

    def values(text):
        source = documents.Source("a.yaml", textwrap.dedent(text).encode())
        return [getattr(item, "root", item) for item in yaml_documents.read(source)]

    return values
