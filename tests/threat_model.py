"""The rights that docs/explanation/threat-model.md lists, and those that the manifests of deploy/ grant."""

import itertools
import pathlib
import re
import typing

import yaml

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "threat-model.md"
CLUSTER = "all"


class Right(typing.NamedTuple):
    """One verb on one resource, written as kubectl does (`replicasets.apps`); `name` is empty if it covers all objects."""

    account: str
    part: str
    verb: str
    resource: str
    name: str
    namespace: str


def listed():
    """The rights of the page."""
    found = []
    for section in re.split(r"^### ServiceAccount ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        account = section[1 : section.index("`", 1)]
        for row in re.findall(r"^\| `deploy/.*$", section, re.MULTILINE):
            part, verbs, resources, namespace, worth = (cell.strip() for cell in row.strip("|").split("|"))
            assert worth, row
            named = re.findall(r"`([^`]+)`(?: \[([^]]+)\])?", resources)
            found += [
                Right(account, part.strip("`"), verb, resource, name, namespace)
                for verb, (resource, name) in itertools.product(verbs.split(", "), named)
            ]
    return found


def granted():
    """The rights of the manifests."""
    found = []
    for file in sorted((ROOT / "deploy").glob("*/*.yaml")):
        part = file.relative_to(ROOT).parent.as_posix()
        manifests = [one for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one]
        rules = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in manifests if "rules" in one}
        for binding in (one for one in manifests if one["kind"].endswith("RoleBinding")):
            namespaced = binding["kind"] == "RoleBinding"
            namespace = binding["metadata"].get("namespace", "bayplan-system") if namespaced else CLUSTER
            role = binding["roleRef"]
            for subject, rule in itertools.product(binding["subjects"], rules.pop((role["kind"], role["name"]))):
                found += rights_of(rule, subject["name"], part, namespace)
        assert not rules, f"{file} has a role that no binding grants"
    return found


def rights_of(rule, account="", part="", namespace=""):
    """The rights of one rule of a role."""
    combinations = itertools.product(
        rule["verbs"], rule["apiGroups"], rule["resources"], rule.get("resourceNames") or [""]
    )
    return [
        Right(account, part, verb, f"{resource}.{group}" if group else resource, name, namespace)
        for verb, group, resource, name in combinations
    ]
