{{/* The image of all containers. */}}
{{- define "bayplan.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end }}

{{/* A list of strings as CEL writes it. The schema keeps quotes and backslashes out. */}}
{{- define "bayplan.celList" -}}
[{{ range $i, $one := . }}{{ if $i }}, {{ end }}'{{ $one }}'{{ end }}]
{{- end }}

{{/* Where the pods of both Deployments may run. */}}
{{- define "bayplan.nodes" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Combinations of values that cannot work. */}}
{{- define "bayplan.check" -}}
{{- if not .Values.pods.enabled -}}
{{- if .Values.webhook.enabled -}}
{{- fail "webhook.enabled: the replicas that schedule pods serve the webhook, so pods.enabled is needed too" -}}
{{- end -}}
{{- if .Values.audit.enabled -}}
{{- fail "audit.enabled: the replicas that schedule pods audit the cluster, so pods.enabled is needed too" -}}
{{- end -}}
{{- if ne .Values.enforcement.mode "off" -}}
{{- fail "enforcement.mode: the replicas that schedule pods enforce, so pods.enabled is needed too; for a fleet use fleet.extraArgs" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.fleetRights.enabled (or .Values.pods.enabled .Values.fleet.enabled) -}}
{{- fail "fleetRights.enabled: it is for a release of its own on Karmada's API server, with pods.enabled and fleet.enabled false" -}}
{{- end -}}
{{- end }}
