{{- /* A DaemonSet of the operator: name, image, container, and what more the container has. */ -}}
{{- define "lab.daemonset" -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    app: {{ .name }}
    app.kubernetes.io/managed-by: gpu-operator
spec:
  selector:
    matchLabels:
      app: {{ .name }}
  template:
    metadata:
      labels:
        app: {{ .name }}
        app.kubernetes.io/managed-by: gpu-operator
    spec:
      priorityClassName: system-node-critical
      serviceAccountName: {{ .account }}
      nodeSelector:
        nvidia.com/gpu.deploy.{{ .deploy }}: "true"
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
          effect: NoSchedule
      containers:
{{ .containers | indent 8 }}
{{- with .volumes }}
      volumes:
{{ . | indent 8 }}
{{- end }}
{{- end -}}
