{{- /* How far all DaemonSets of the operator are alike: name, account, and the label that picks their nodes.
       What follows it are the containers, indented by 6. */ -}}
{{- define "operand.daemonset" -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .name }}
  labels:
    app: {{ .name }}
    app.kubernetes.io/part-of: gpu-operator
spec:
  selector:
    matchLabels:
      app: {{ .name }}
  template:
    metadata:
      labels:
        app: {{ .name }}
        app.kubernetes.io/managed-by: gpu-operator
        app.kubernetes.io/part-of: gpu-operator
    spec:
      priorityClassName: system-node-critical
      serviceAccountName: {{ .account }}
      nodeSelector:
        nvidia.com/gpu.deploy.{{ .deploy }}: "true"
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
          effect: NoSchedule
{{- end }}

{{- define "operand.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ . }}
  labels:
    app.kubernetes.io/part-of: gpu-operator
{{- end }}

{{- define "nfd.labels" -}}
app.kubernetes.io/name: node-feature-discovery
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
