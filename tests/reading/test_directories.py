"""A directory may be somebody else's: nothing in it leads out of it, and nothing in it is read that is no file."""

import os
import socket

import pytest

from bayplan.reading import files

NODE = "{apiVersion: v1, kind: Node, metadata: {name: a}}"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A directory with one file, beside a directory of somebody else."""
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "node.yaml").write_text(NODE)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.yaml").write_text(NODE.replace("a}", "secret}"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "tree"


def found(*, recursive=True):
    result = files.find_files(["tree"], recursive=recursive)
    return result.files, [str(fault) for fault in (*result.faults, *result.skipped)]


@pytest.mark.parametrize("leads_to", ["../other/secret.yaml", "/etc/passwd", "/dev/zero"])
def test_links_that_lead_out_are_skipped(tree, leads_to):
    (tree / "link.yaml").symlink_to(leads_to)
    assert found() == (["tree/sub/node.yaml"], ["tree/link.yaml: skipped: a link that leads out of the directory"])


def test_links_to_folders_that_lead_out_are_skipped(tree):
    (tree / "link").symlink_to("../other")
    assert found() == (["tree/sub/node.yaml"], ["tree/link: skipped: a link that leads out of the directory"])


def test_links_within_the_directory_are_files(tree):
    """As in the volume of a ConfigMap."""
    (tree / "web.yaml").symlink_to("sub/node.yaml")
    (tree / "again").symlink_to("sub")
    assert found() == (["tree/sub/node.yaml"], [])
    assert found(recursive=False) == (["tree/web.yaml"], [])


def test_the_directory_itself_may_be_a_link(tree):
    (tree.parent / "link").symlink_to("tree")
    assert files.find_files(["link"], recursive=True).files == ["link/sub/node.yaml"]


def test_pipes_and_sockets_are_skipped(tree):
    os.mkfifo(tree / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("tree/socket.json")
    notes = ["tree/pipe.yaml: skipped: not a file", "tree/socket.json: skipped: not a file"]
    assert found() == (["tree/sub/node.yaml"], notes)
    message = "tree: the directory holds no .yaml, .yml or .json file; its subdirectories do: add -R"
    assert found(recursive=False) == ([], [message, *notes])


def test_a_link_that_leads_nowhere_is_a_file_that_cannot_be_read(tree):
    (tree / "link.yaml").symlink_to("nowhere.yaml")
    assert found()[0] == ["tree/link.yaml", "tree/sub/node.yaml"]


@pytest.mark.parametrize("command", ["place", "validate", "audit", "snapshot", "quota", "violations"])
def test_commands_say_what_they_skipped(tree, command):
    from click.testing import CliRunner

    from bayplan.cli import main

    os.mkfifo(tree / "pipe.yaml")
    (tree / "link.yaml").symlink_to("../other/secret.yaml")
    done = CliRunner().invoke(main.cli, [command, "-f", "tree", "-R"], prog_name="bayplan")
    assert done.exit_code in (0, 1), done.stderr
    assert "tree/pipe.yaml: skipped: not a file" in done.stderr
    assert "tree/link.yaml: skipped: a link that leads out of the directory" in done.stderr
    assert "secret" not in done.stdout
