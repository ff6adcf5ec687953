"""The real Helm, with its settings in a folder of its own."""

import os
import subprocess

import yaml


class Helm:
    def __init__(self, path, folder):
        self._path, self._folder = path, folder

    def __call__(self, *arguments, kubeconfig=None, check=True):
        """Run Helm; a failure is an AssertionError with what it said, unless `check` is false."""
        homes = {f"HELM_{kind}_HOME": str(self._folder / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        cluster = ["--kubeconfig", kubeconfig] if kubeconfig else []
        done = subprocess.run(
            [self._path, *arguments, *cluster],
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder), **homes},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def rendered(self, chart, release_namespace="bayplan-system", **values):
        """Return the objects of a release; values are JSON."""
        set_values = [word for name, value in values.items() for word in ("--set-json", f"{name}={value}")]
        command = ("template", "bayplan", str(chart), "--namespace", release_namespace, *set_values)
        return [one for one in yaml.load_all(self(*command).stdout, yaml.CSafeLoader) if one]
