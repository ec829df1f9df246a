{{- /*
The scrape jobs that the operator would make of ServiceMonitors: of Prometheus itself, and of the exporter of
GPUs. No operator runs in the lab, so what the exporter's ServiceMonitor says is read from annotations of its
Service, which the stand-in of the GPU Operator writes along with the monitor.
*/ -}}
{{- define "stack.jobs" -}}
- job_name: serviceMonitor/{{ .Release.Namespace }}/{{ include "stack.fullname" . }}-prometheus/0
  kubernetes_sd_configs:
    - role: endpoints
      namespaces:
        names: [{{ .Release.Namespace }}]
  relabel_configs:
    - action: keep
      source_labels: [__meta_kubernetes_service_name, __meta_kubernetes_endpoint_port_name]
      regex: {{ include "stack.fullname" . }}-prometheus;http-web
    {{- include "stack.relabelings" . | nindent 4 }}
{{- range $honor := list "false" "true" }}
- job_name: serviceMonitor/dcgm-exporter/honorLabels={{ $honor }}
  honor_labels: {{ $honor }}
  kubernetes_sd_configs:
    - role: endpoints
  relabel_configs:
    - action: keep
      source_labels:
        - __meta_kubernetes_service_annotation_gpuworkshop_io_monitored_honor_labels
        - __meta_kubernetes_endpoint_port_name
      regex: {{ $honor }};gpu-metrics
    {{- if $.Values.prometheus.prometheusSpec.serviceMonitorSelectorNilUsesHelmValues }}
    - action: keep
      source_labels: [__meta_kubernetes_service_annotation_gpuworkshop_io_monitored_for]
      regex: {{ $.Release.Name }}
    {{- end }}
    - source_labels: [__meta_kubernetes_service_annotation_gpuworkshop_io_monitored_every]
      regex: (.+)
      target_label: __scrape_interval__
    - source_labels: [__meta_kubernetes_service_annotation_gpuworkshop_io_monitored_every]
      regex: (.+)
      target_label: __scrape_timeout__
    {{- include "stack.relabelings" $ | nindent 4 }}
{{- end }}
{{- end }}

{{- /* The labels that the operator gives every target. */ -}}
{{- define "stack.relabelings" -}}
- source_labels: [__meta_kubernetes_namespace]
  target_label: namespace
- source_labels: [__meta_kubernetes_service_name]
  target_label: service
- source_labels: [__meta_kubernetes_pod_name]
  target_label: pod
- source_labels: [__meta_kubernetes_pod_container_name]
  target_label: container
- source_labels: [__meta_kubernetes_endpoint_port_name]
  target_label: endpoint
- source_labels: [__meta_kubernetes_service_name]
  target_label: job
{{- end }}
