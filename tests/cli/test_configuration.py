"""Flags override variables, variables override the file; faults in a file are reported."""

import json

import pytest
import yaml

from bayplan.engine.engine import Engine

HEAD = "apiVersion: bayplan.io/v1alpha1\nkind: BayplanConfiguration\n"


def write(folder, text):
    path = folder / "settings" / "config.yaml"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(HEAD + text)
    return path


def output_of(result):
    """The effective -o."""
    text = result.stdout
    return "json" if text.startswith("{") else "yaml" if text.startswith("apiVersion") else text.split("/")[0]


@pytest.mark.parametrize("flags, variables, settings, wins", [
    ((), {}, "commands: {place: {output: yaml}}", "yaml"),
    ((), {}, "options: {output: yaml}", "yaml"),
    ((), {}, "{options: {output: yaml}, commands: {place: {output: json}}}", "json"),
    ((), {"BAYPLAN_OUTPUT": "json"}, "options: {output: yaml}", "json"),
    ((), {"BAYPLAN_OUTPUT": "json", "BAYPLAN_PLACE_OUTPUT": "name"}, "options: {output: yaml}", "pod"),
    (("-o", "name"), {"BAYPLAN_PLACE_OUTPUT": "json"}, "options: {output: yaml}", "pod"),
])  # fmt: skip
def test_flag_over_variable_over_file(flags, variables, settings, wins, run, scene):
    path = write(scene, yaml.safe_dump(yaml.safe_load(settings)))
    assert output_of(run("place", "-f", "nodes.yaml", "-f", "db.yaml", "--config", path, *flags, **variables)) == wins


def test_the_file_may_be_named_by_a_variable(run, scene):
    path = write(scene, "options: {output: json}\n")
    assert output_of(run("place", "-f", "nodes.yaml", "-f", "db.yaml", BAYPLAN_CONFIG=str(path))) == "json"


def test_the_configuration_file_has_a_default_path(run, scene, tmp_path):
    folder = tmp_path / "config" / "bayplan"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(HEAD + "commands: {version: {output: json}}\n")
    assert json.loads(run("version").stdout)["kind"] == "Version"


def test_the_configuration_file_can_name_input_files(run, scene):
    path = write(scene, "commands: {place: {filename: [nodes.yaml, db.yaml], outputFile: plan.txt}}\n")
    assert run("place", "--config", path).exit_code == 0
    assert (scene / "plan.txt").exists()


def test_the_configuration_file_can_hold_the_scheduler_configuration(run, scene):
    path = write(scene, "scheduler: {profiles: [{plugins: {filter: {disabled: [{name: InterPodAffinity}]}}}]}\n")
    assert run("place", "-f", ".", "--config", path).exit_code == 0


def test_each_pod_is_placed_by_the_profile_of_its_scheduler(run, scene):
    lenient = "{schedulerName: lenient, plugins: {filter: {disabled: [{name: NodeAffinity}]}}}"
    path = write(scene, f"scheduler: {{profiles: [{{schedulerName: default-scheduler}}, {lenient}]}}\n")
    pod = {"apiVersion": "v1", "kind": "Pod"}
    somewhere_else = {"nodeSelector": {"disk": "none"}, "containers": [{"name": "main", "image": "x"}]}
    documents = [
        {**pod, "metadata": {"name": f"of-{name}"}, "spec": {**somewhere_else, "schedulerName": name}}
        for name in ("default-scheduler", "lenient", "unheard-of")
    ]
    (scene / "three.yaml").write_text(yaml.safe_dump_all(documents))
    found = run("place", "-f", "nodes.yaml", "-f", "three.yaml", "--config", path, "-o", "json")
    placed = {one["name"]: bool(one["target"]) for one in json.loads(found.stdout)["items"]}
    assert placed == {"of-default-scheduler": False, "of-lenient": True, "of-unheard-of": False}
    explained = [
        run("explain", f"pod/of-{name}", "-f", "nodes.yaml", "-f", "three.yaml", "--config", path)
        for name in ("lenient", "unheard-of")
    ]
    assert [result.exit_code for result in explained] == [0, 1]


def test_pods_that_name_many_schedulers_share_one_engine(run, scene, monkeypatch):
    made = []
    monkeypatch.setattr(
        Engine, "__init__", lambda self, *given, init=Engine.__init__: made.append(self) or init(self, *given)
    )
    path = write(scene, "scheduler: {profiles: [{schedulerName: one}, {schedulerName: two}]}\n")
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{i}"},
            "spec": {"schedulerName": f"of-tenant-{i}", "containers": [{"name": "main", "image": "x"}]},
        }
        for i in range(20)
    ]
    (scene / "many.yaml").write_text(yaml.safe_dump_all(pods))
    assert run("place", "-f", "nodes.yaml", "-f", "many.yaml", "--config", path).exit_code == 0
    assert len(made) == 3  # of the first profile, for all others, and of the two that are named


@pytest.mark.parametrize("text, message", [
    ("options: {colour: never}", "config.yaml:3, BayplanConfiguration: options.colour: unknown option, did you mean color?"),
    ("commands: {plaze: {}}", "commands[plaze]: unknown command, did you mean place?"),
    ("commands: {place: {repeat: 2}}", "commands[place].repeat: unknown option"),
    ("option: {}", "option: unknown field, did you mean options?"),
    ("options: [color]", "options: expected a mapping, got a list"),
    ("options: {seed: [1]}", "options.seed: expected a string, a number, true or false, got a list"),
    ("commands: {place: 1}", "commands[place]: expected a mapping, got the number 1"),
    ("commands: {place: {verbose: {}}}", "commands[place].verbose: expected a string, a number, true or false, got a mapping"),
    ("commands: {place: {filename: nodes.yaml}}", 'commands[place].filename: expected a list, got the string "nodes.yaml"'),
    ("commands: {place: {filename: [null]}}", "commands[place].filename[0]: expected a string, a number, true or false, got null"),
    ("scheduler: 1", "scheduler: expected a mapping, got the number 1"),
    ("scheduler: {profiles: {}}", "config.yaml:3, BayplanConfiguration: scheduler.profiles: expected a list, got a mapping"),
    ("options: {color: pink}", "'pink' is not one of"),
])  # fmt: skip
def test_a_bad_file_is_not_used_in_part(text, message, run, scene):
    result = run("version", "--config", write(scene, text + "\n"))
    assert result.exit_code == 2
    assert message in result.stderr


SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: "4"
profiles:
- schedulerName: [default-scheduler]
  plugins:
    score: true
    filter: {disabled: [NodePorts]}
  pluginConfig:
  - args: {}
  - name: NodeResourcesFit
    args:
      ignoredResources: example.com/foo
      scoringStrategy: {resources: [{weight: "1"}]}
  - name: NodeAffinity
    args:
      addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [5]}}
  - name: PodTopologySpread
    args: {defaultConstraints: [{maxSkew: 1.5}]}
  - {name: InterPodAffinity, args: [1]}
  - {name: DefaultPreemption, args: {minCandidateNodesPercentage: lots}}
  - {name: NodeResourcesBalancedAllocation, args: {resources: cpu}}
- null
"""


def test_all_values_of_wrong_types_in_a_scheduler_configuration_are_reported(run, scene):
    (scene / "scheduler.yaml").write_text(SCHEDULER)
    result = run("place", "-f", ".", "--config", "scheduler.yaml")
    config = "profiles[0].pluginConfig"
    strategy = f"{config}[1].args.scoringStrategy.resources[0]"
    required = f"{config}[2].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    assert result.stderr.replace("error: scheduler.yaml:", "").replace(
        "KubeSchedulerConfiguration: ", ""
    ).splitlines() == [
        '3, parallelism: expected a whole number, got the string "4"',
        "5, profiles[0].schedulerName: expected a string, got a list",
        "7, profiles[0].plugins.score: expected a mapping, got true",
        '8, profiles[0].plugins.filter.disabled[0]: expected a mapping, got the string "NodePorts"',
        f"10, {config}[0].name: expected a string, got nothing",
        "23, profiles[1]: expected a mapping, got null",
        f'13, {config}[1].args.ignoredResources: expected a list, got the string "example.com/foo"',
        f'14, {strategy}.weight: expected a whole number, got the string "1"',
        f"14, {strategy}.name: expected a string, got nothing",
        f"17, {required}.nodeSelectorTerms[0]: expected a mapping, got the number 5",
        f"19, {config}[3].args.defaultConstraints[0].maxSkew: expected a whole number, got the number 1.5",
        f"20, {config}[4].args: expected a mapping, got a list",
        f'21, {config}[5].args.minCandidateNodesPercentage: expected a whole number, got the string "lots"',
        f'22, {config}[6].args.resources: expected a list, got the string "cpu"',
    ]
    assert result.exit_code == 2
    assert "scheduler.yaml:3   KubeSchedulerConfiguration" in run("validate", "-f", "scheduler.yaml").stdout


def test_null_means_absent_in_a_scheduler_configuration(run, scene):
    text = "parallelism: null\nprofiles: [{plugins: {score: null, filter: {disabled: null}}, pluginConfig: null}]\n"
    (scene / "scheduler.yaml").write_text("\n".join(SCHEDULER.splitlines()[:2]) + f"\n{text}")
    assert run("place", "-f", "nodes.yaml", "-f", "db.yaml", "--config", "scheduler.yaml").exit_code == 0


@pytest.mark.parametrize("text, message", [
    ("kind: Other\napiVersion: v1\n", "expected BayplanConfiguration or KubeSchedulerConfiguration, got Other"),
    ("kind: BayplanConfiguration\napiVersion: bayplan.io/v2\n", "expected bayplan.io/v1alpha1, got bayplan.io/v2"),
    (f"{HEAD}---\n{HEAD}", "expected one BayplanConfiguration, got 2 objects"),
    ("", "empty"),
])  # fmt: skip
def test_a_file_of_another_kind_is_an_error(text, message, run, tmp_path):
    path = tmp_path / "other.yaml"
    path.write_text(text)
    result = run("version", "--config", path)
    assert result.exit_code == 2
    assert message in result.stderr


def test_view_merges_flags_variables_and_the_file(run, scene):
    path = write(scene, "options: {color: never}\ncommands: {place: {output: wide}}\nscheduler: {parallelism: 4}\n")
    shown = yaml.safe_load(run("config", "view", "--config", path, BAYPLAN_SEED="s").stdout)
    assert shown["kind"] == "BayplanConfiguration"
    assert shown["options"] == {"color": "never"}
    assert shown["commands"].pop("place") == {"output": "wide", "seed": "s"}
    assert shown["commands"].pop("explain") == {"seed": "s"}
    assert {str(given) for given in shown["commands"].values()} <= {"{'seed': 's'}"}  # others that decide have it too
    assert shown["scheduler"] == {"parallelism": 4}


def test_view_is_itself_a_configuration(run, scene):
    path = write(scene, "options: {color: never}\ncommands: {place: {output: wide}}\n")
    again = scene / "again.yaml"
    again.write_text(run("config", "view", "--config", path).stdout)
    assert run("version", "--config", again).exit_code == 0


def test_view_of_one_command_with_its_arguments(run, scene):
    path = write(scene, "options: {color: never}\n")
    words = ("config", "view", "--origins", "-o", "json", "--config", path, "place", "-o", "wide", "-f", "x")
    place = json.loads(run(*words, BAYPLAN_SEED="s").stdout)["commands"]["place"]
    assert place["output"] == {"value": "wide", "origin": "flag"}
    assert place["seed"] == {"value": "s", "origin": "variable"}
    assert place["color"] == {"value": "never", "origin": "file"}
    assert place["semantics"] == {"value": "upstream", "origin": "default"}


def test_view_of_an_unknown_command(run):
    assert "Did you mean 'place'?" in run("config", "view", "plcae").stderr


@pytest.mark.parametrize("variables, blamed", [
    ({"BAYPLAN_OUTPUT": "pink"}, "'-o' / '--output' (from the variable BAYPLAN_OUTPUT)"),
    ({"BAYPLAN_VERSION_OUTPUT": "pink", "BAYPLAN_OUTPUT": "json"}, "(from the variable BAYPLAN_VERSION_OUTPUT)"),
    ({}, "config.yaml)"),
])  # fmt: skip
def test_a_bad_value_is_reported_with_its_source(variables, blamed, run, scene):
    words = () if variables else ("--config", write(scene, "options: {output: pink}\n"))
    result = run("version", *words, **variables)
    assert result.exit_code == 2
    assert f"{blamed}: 'pink' is not one of" in result.stderr


def test_a_bad_flag_is_reported_without_another_source(run):
    assert "for '-o' / '--output': 'pink'" in run("version", "-o", "pink", BAYPLAN_OUTPUT="json").stderr
