"""
Writes the templates of the Helm chart that are the manifests of deploy/, which stay the only place to change them.

`python tools/chart/make_chart.py` writes charts/bayplan/templates/from-*.yaml and charts/bayplan/files; `--check` says
what would change. The Deployment of the scheduler, which depends on most values, is a template of its own;
tests/live/test_chart.py renders both with all combinations of values and compares them.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TEMPLATES = ROOT / "charts" / "bayplan" / "templates"
SCHEDULER = ".Values.pods.enabled"
FLEET = ".Values.fleet.enabled"
CERTIFICATES = "and .Values.webhook.enabled .Values.webhook.certificates"
# When a file of deploy/ is part of a release. Those that are missing here are no part of the chart: the namespace,
# which Helm creates, the Deployment, and the webhook configurations for Karmada's API server.
CONDITIONS = {
    "base/service-account.yaml": SCHEDULER,
    "base/rbac.yaml": ".Values.pods.enabled",
    "base/lease.yaml": ".Values.pods.enabled",
    "base/service.yaml": SCHEDULER,
    "base/disruption-budget.yaml": SCHEDULER,
    "base/network-policy.yaml": SCHEDULER,
    "base/volume-policy.yaml": ".Values.pods.enabled",
    "enforcing/rbac.yaml": 'and .Values.pods.enabled (eq .Values.enforcement.mode "on")',
    "auditing/rbac.yaml": ".Values.audit.enabled",
    "webhook/configurations.yaml": ".Values.webhook.enabled",
    "webhook/rbac.yaml": ".Values.webhook.enabled",
    "webhook/service.yaml": ".Values.webhook.enabled",
    "webhook-certificates/deployment.yaml": CERTIFICATES,
    "webhook-certificates/policy.yaml": CERTIFICATES,
    "webhook-certificates/rbac.yaml": CERTIFICATES,
    "guard/admission-policy.yaml": ".Values.guard.enabled",
    "monitoring/service-monitor.yaml": ".Values.monitoring.serviceMonitor",
    "monitoring/rules.yaml": ".Values.monitoring.rules",
    "fleet-host/deployment.yaml": FLEET,
    "fleet-host/disruption-budget.yaml": FLEET,
    "fleet-host/network-policy.yaml": FLEET,
    "fleet-host/service-account.yaml": FLEET,
    "fleet-host/service.yaml": FLEET,
    "fleet/rbac.yaml": ".Values.fleetRights.enabled",
    "fleet/service-account.yaml": ".Values.fleetRights.enabled",
}
LISTS = ("nodeTopologyKeys", "exemptUsers", "exemptGroups", "exemptNamespaces")
LAST_ARGUMENT = "            - --log-format=json\n"
EXTRA_ARGUMENTS = (
    "            {{- range .Values.fleet.extraArgs }}\n            - {{ . | quote }}\n            {{- end }}\n"
)
PULL_SECRETS = "{{- with .Values.image.pullSecrets }}\nimagePullSecrets: {{- toYaml . | nindent 2 }}\n{{- end }}\n"
NODES = '      {{- with include "bayplan.nodes" . }}\n      {{- . | nindent 6 }}\n      {{- end }}\n'


def template(name, condition, text):
    """The template for the text of a file of deploy/."""
    text = text.replace("{{", '{{ "{{" }}')  # those of alerts are for Prometheus
    documents = [_document(part.strip("\n") + "\n") for part in re.split(r"^---$", text, flags=re.MULTILINE)]
    body = "---\n".join(documents).replace("bayplan-system", "{{ .Release.Namespace }}")
    note = f"{{{{- /* Made from deploy/{name} by tools/chart/make_chart.py: change it there. */}}}}\n"
    return f"{note}{{{{- if {condition} }}}}\n{body}{{{{- end }}}}\n"


def _document(text):
    text = re.sub(r"image: bayplan:\S+", 'image: {{ include "bayplan.image" . | quote }}', text)
    text = text.replace("secretName: bayplan-fleet-kubeconfig", "secretName: {{ .Values.fleet.kubeconfigSecret }}")
    text = text.replace(LAST_ARGUMENT, LAST_ARGUMENT + EXTRA_ARGUMENTS)
    text = text.replace("runbook_url: ", "runbook_url: {{ .Values.monitoring.documentation }}")
    text = text.replace(") > 20\n", ") > {{ .Values.monitoring.pendingAbove }}\n")
    text = text.replace("      priorityClassName: system-cluster-critical\n", _priority() + NODES)
    text = (
        text.replace("  failurePolicy: Ignore\n", "  failurePolicy: {{ .Values.webhook.failurePolicy }}\n")
        if _is("WebhookConfiguration", text)
        else text
    )
    text = text.replace("\"'all-namespaces'\"", "{{ printf \"'%s'\" .Values.guard.restrict | quote }}")
    for name in LISTS:
        value = f'{{{{ include "bayplan.celList" .Values.guard.{name} | quote }}}}'
        text = re.sub(rf'(name: {name}, expression: )"[^"]*"', lambda found, value=value: found[1] + value, text)
    if _is("ServiceAccount", text):
        text += PULL_SECRETS
    return (
        f"{{{{- if .Values.networkPolicy.enabled }}}}\n{text}{{{{- end }}}}\n" if _is("NetworkPolicy", text) else text
    )


def _priority():
    value = "      priorityClassName: {{ . }}\n"
    return f"      {{{{- with .Values.priorityClassName }}}}\n{value}      {{{{- end }}}}\n"


def _is(kind, text):
    return re.search(rf"^kind: \w*{kind}$", text, re.MULTILINE) is not None


def templates():
    """The content of each generated template by its file."""
    copied = {
        TEMPLATES.parent / "files" / "dashboard.json": (DEPLOY / "monitoring" / "dashboard.json").read_text("utf-8")
    }
    return copied | {
        TEMPLATES / f"from-{name.replace('/', '-')}": template(name, condition, (DEPLOY / name).read_text("utf-8"))
        for name, condition in CONDITIONS.items()
    }


def outdated(expected):
    """The files that differ from what they should contain, and those that should not exist."""
    there = {*TEMPLATES.glob("from-*.yaml"), *TEMPLATES.parent.glob("files/*")}
    changed = {path for path, text in expected.items() if path not in there or path.read_text("utf-8") != text}
    return sorted(changed | (there - set(expected)))


def main(*arguments):
    expected = templates()
    found = outdated(expected)
    for path in found if "--check" in arguments else ():
        sys.stderr.write(f"{path.relative_to(ROOT)} is not what deploy/ has: run tools/chart/make_chart.py\n")
    if "--check" in arguments:
        return 1 if found else 0
    for path in found:
        path.unlink(missing_ok=True)
        if path in expected:
            path.write_text(expected[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
