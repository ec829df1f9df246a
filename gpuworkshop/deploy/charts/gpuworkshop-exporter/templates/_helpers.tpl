{{- define "exporter.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "exporter.labels" -}}
{{ include "exporter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The release's name, which names the chart too: `helm install gpuworkshop-exporter …` gives just that. */ -}}
{{- define "exporter.name" -}}
{{- $name := .Release.Name }}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end }}
{{- $name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* Who asks the API server which pods this node has. */ -}}
{{- define "exporter.watches" -}}
{{- if or .Values.perProcess .Values.attributionOnly .Values.podUid .Values.podLabels }}true{{ end }}
{{- end }}
