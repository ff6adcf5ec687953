"""
The bill of materials of the image, in CycloneDX's JSON, and its licences as a page: what deploy/requirements.txt pins.

`python tools/release/sbom.py FOLDER` writes bayplan-VERSION.cdx.json and LICENCES.md. Licences are read from the
installed packages, so it runs in the environment of `make setup`. The same input gives the same bytes.
"""

import importlib.metadata
import json
import pathlib
import re
import sys
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+?)(?: ; ([^\\]*?))? \\$", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def pins(text):
    """Name, version, environment marker and hashes of each requirement."""
    found = list(PIN.finditer(text))
    ends = [one.start() for one in found[1:]] + [len(text)]
    return [
        (one[1], one[2], (one[3] or "").strip(), HASH.findall(text[one.end() : end]))
        for one, end in zip(found, ends, strict=True)
    ]


def licence_of(name):
    """The licence that a package declares: its expression, its classifiers or its field; empty if there is none."""
    try:
        metadata = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    classifiers = [
        one.rsplit(" :: ", 1)[-1] for one in metadata.get_all("Classifier") or () if one.startswith("License ::")
    ]
    field = (metadata.get("License") or "").strip()
    return metadata.get("License-Expression") or " and ".join(classifiers) or (field if "\n" not in field else "")


def components(text):
    for name, version, marker, hashes in pins(text):
        component = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            # A version has a file for each platform; every one that may be installed is listed.
            "properties": [{"name": "bayplan:sha256", "value": one} for one in hashes],
        }
        licence = licence_of(name)
        if licence:
            component["licenses"] = [{"license": {"name": licence}}]
        if marker:
            component["properties"].append({"name": "bayplan:marker", "value": marker})
        yield component


def bill(text):
    about = project()
    own = f"pkg:pypi/{about['name']}@{about['version']}"
    found = list(components(text))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": about["name"],
                "version": about["version"],
                "purl": own,
                "licenses": [{"license": {"id": about["license"]}}],
            }
        },
        "components": found,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in found]}],
    }


def licences(text):
    rows = [f"| {name} | {version} | {licence_of(name) or 'not declared'} |" for name, version, _, _ in pins(text)]
    head = [
        "# Licences",
        "",
        "What the image contains beside Bayplan (Apache-2.0) and Python.",
        "",
        "| Package | Version | Licence |",
    ]
    return "\n".join([*head, "|---|---|---|", *rows, ""])


def write(folder):
    text = (ROOT / "deploy" / "requirements.txt").read_text("utf-8")
    about = project()
    (folder / f"{about['name']}-{about['version']}.cdx.json").write_text(
        json.dumps(bill(text), indent=1) + "\n", "utf-8"
    )
    (folder / "LICENCES.md").write_text(licences(text), "utf-8")


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write(target)
