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
{{- $scheduler := or .Values.pods.enabled .Values.fleet.enabled -}}
{{- if and (not $scheduler) .Values.webhook.enabled -}}
{{- fail "webhook.enabled: the replicas of the scheduler serve the webhook, so pods.enabled or fleet.enabled is needed too" -}}
{{- end -}}
{{- if and .Values.webhook.enabled (not .Values.pods.enabled) -}}
{{- fail "webhook.enabled: reviews need the state of this cluster, so pods.enabled is needed too" -}}
{{- end -}}
{{- if and .Values.audit.enabled (not .Values.pods.enabled) -}}
{{- fail "audit.enabled: an audit is of this cluster, so pods.enabled is needed too" -}}
{{- end -}}
{{- if and (ne .Values.enforcement.mode "off") (not $scheduler) -}}
{{- fail "enforcement.mode: the scheduler enforces, so pods.enabled or fleet.enabled is needed too" -}}
{{- end -}}
{{- end }}
