"""
`python -m live.module_files VERSION` writes the module file of a version of Kubernetes beside that of the servers.

Only the versions differ: of the servers' file those of Kubernetes are replaced, and Go adds what they need.
"""

import shutil
import sys

from live import kube_binaries


def write(version):
    """Write go-VERSION.mod and go-VERSION.sum; return the path of the first."""
    folder, release = kube_binaries.MODULE, kube_binaries.RELEASES[version]
    path = folder / f"go-{version}.mod"
    text = (folder / "go.mod").read_text(encoding="utf-8")
    for major in ("v0.", "v1."):  # the staging modules of v1.X.Y are v0.X.Y
        text = text.replace(kube_binaries.KUBE_VERSION.replace("v1.", major), release.replace("v1.", major))
    path.write_text(text, encoding="utf-8")
    shutil.copy(folder / "go.sum", path.with_suffix(".sum"))
    done = kube_binaries._go("mod", "tidy", f"-modfile={path.name}")
    if done.returncode:
        raise kube_binaries.UnavailableError(f"the modules of {release} cannot be had: {done.stderr.strip()}")
    return path


def main():
    servers = kube_binaries.KUBE_VERSION
    others = [version for version, release in kube_binaries.RELEASES.items() if release != servers]
    if sys.argv[1:] not in [[version] for version in others]:
        sys.stderr.write(f"usage: python -m live.module_files {'|'.join(others)}\n")
        return 2
    try:
        sys.stdout.write(f"{write(sys.argv[1])}\n")
    except kube_binaries.UnavailableError as reason:
        sys.stderr.write(f"module-file: {reason}\n")
        return kube_binaries.UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
