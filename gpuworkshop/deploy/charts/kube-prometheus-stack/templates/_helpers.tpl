{{- /* What the real chart calls its objects. */ -}}
{{- define "lab.fullname" -}}
{{- if contains "kube-prometheus-stack" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-kube-prometheus-stack{{ end }}
{{- end -}}
