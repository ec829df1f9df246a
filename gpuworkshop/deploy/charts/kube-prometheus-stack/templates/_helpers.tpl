{{- /* The prefix of most objects, cut at 26 characters as in the real chart: Alertmanager's names must fit. */ -}}
{{- define "stack.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- $name | trunc 26 | trimSuffix "-" -}}
{{- end }}

{{- define "stack.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: kube-prometheus-stack
release: {{ .Release.Name | quote }}
{{- end }}

{{- /* A Deployment, DaemonSet or StatefulSet of one pause: root, kind, name, app, container, image. */ -}}
{{- define "stack.pause" -}}
apiVersion: apps/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  labels:
    app.kubernetes.io/name: {{ .app }}
    {{- include "stack.labels" .root | nindent 4 }}
spec:
  {{- if eq .kind "StatefulSet" }}
  serviceName: {{ .app }}-operated
  {{- end }}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .app }}
      app.kubernetes.io/instance: {{ .root.Release.Name }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {{ .app }}
        {{- include "stack.labels" .root | nindent 8 }}
    spec:
      {{- if eq .kind "DaemonSet" }}
      tolerations:
        - effect: NoSchedule
          operator: Exists
      {{- end }}
      containers:
        - name: {{ .container }}
          image: {{ .image }}
{{- end }}

{{- /* A Service of pods by their name: root, name, app, type, port, portName, targetPort. */ -}}
{{- define "stack.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  labels:
    app.kubernetes.io/name: {{ .app }}
    {{- include "stack.labels" .root | nindent 4 }}
spec:
  type: {{ .type }}
  selector:
    app.kubernetes.io/name: {{ .app }}
    app.kubernetes.io/instance: {{ .root.Release.Name }}
  ports:
    - name: {{ .portName }}
      port: {{ .port }}
      targetPort: {{ .targetPort }}
      protocol: TCP
{{- end }}
