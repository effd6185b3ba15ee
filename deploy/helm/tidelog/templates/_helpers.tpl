{{- define "tidelog.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "tidelog.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}{{- $name := include "tidelog.name" . }}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}{{- end }}
{{- end }}
{{- end }}

{{/* Labels that select a component's pods: (dict "root" $ "component" "broker"). */}}
{{- define "tidelog.selector" -}}
app.kubernetes.io/name: {{ include "tidelog.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "tidelog.labels" -}}
{{ include "tidelog.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* Name and labels of what a component has. */}}
{{- define "tidelog.metadata" -}}
name: {{ include "tidelog.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "tidelog.labels" . | nindent 2 }}
{{- end }}

{{- define "tidelog.image" -}}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}
{{- else }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}{{- end }}
{{- end }}

{{- define "tidelog.lake" -}}
{{- if .Values.lake.volume.enabled }}/lake
{{- else }}{{ required "lake.address says where the lake is, as s3://bucket/lake; or set lake.volume.enabled" .Values.lake.address }}{{- end }}
{{- end }}

{{- define "tidelog.serviceAccountName" -}}
{{- $values := ternary "maintenance" .values (eq .values "compaction") }}
{{- $own := (get .root.Values $values).serviceAccount }}
{{- if $own.name }}{{ $own.name }}
{{- else if .root.Values.serviceAccount.create }}{{ include "tidelog.fullname" .root }}-{{ .component }}
{{- else }}default{{- end }}
{{- end }}

{{/* The environment of each container. */}}
{{- define "tidelog.env" -}}
- {name: TIDELOG_LAKE, value: {{ include "tidelog.lake" . | quote }}}
- {name: TIDELOG_LOG_FORMAT, value: {{ .Values.log.format }}}
- {name: TIDELOG_LOG_LEVEL, value: {{ .Values.log.level }}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
{{- with .Values.lake.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Variables of secrets. `sends`: whether it is one that sends to a collector. */}}
{{- define "tidelog.envFrom" -}}
{{- $secrets := compact (list .root.Values.lake.existingSecret .secret (ternary .root.Values.otlp.existingSecret "" (default false .sends))) }}
{{- if $secrets }}
envFrom:
  {{- range $secrets }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- end }}
{{- end }}

{{/* Options of the lake's store, as arguments. */}}
{{- define "tidelog.storeOptions" -}}
{{- range $key, $value := .Values.lake.options }}
- --store-option
- {{ printf "%s=%s" $key (include "tidelog.text" $value) | quote }}
{{- end }}
{{- end }}

{{/* The collector of what stays up, as arguments, and its variables. */}}
{{- define "tidelog.otlp" -}}
{{- with .Values.otlp.url }}
- --otlp
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "tidelog.otlpEnv" -}}
{{- with .Values.otlp.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tidelog.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "tidelog.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* What all pods have. A Service's links would give TIDELOG_… variables that no setting has. */}}
{{- define "tidelog.pod" -}}
serviceAccountName: {{ include "tidelog.serviceAccountName" . }}
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
securityContext:
  {{- include "tidelog.podSecurity" . | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- $own := get .root.Values .values }}
{{- with $own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if $own.affinity }}
affinity:
  {{- toYaml $own.affinity | nindent 2 }}
{{- else if .root.Values.lake.volume.enabled }}
affinity:
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            app.kubernetes.io/name: {{ include "tidelog.name" .root }}
            app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}
{{- end }}

{{- define "tidelog.podLabels" -}}
{{ include "tidelog.labels" . }}
{{- with .root.Values.serviceAccount.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tidelog.podAnnotations" -}}
{{- if and .root.Values.metrics.podAnnotations (not .root.Values.metrics.serviceMonitor.enabled) }}
prometheus.io/scrape: "true"
prometheus.io/port: "9404"
prometheus.io/path: /metrics
{{- end }}
{{- with (get .root.Values .values).podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tidelog.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
{{- if .root.Values.lake.volume.enabled }}
- name: lake
  persistentVolumeClaim:
    claimName: {{ .root.Values.lake.volume.existingClaim | default (printf "%s-lake" (include "tidelog.fullname" .root)) }}
{{- end }}
{{- with ((get .root.Values .values).tls).secretName }}
- name: tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "tidelog.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.lake.volume.enabled }}
- {name: lake, mountPath: /lake}
{{- end }}
{{- if ((get .root.Values .values).tls).secretName }}
- {name: tls, mountPath: /etc/tidelog/tls, readOnly: true}
{{- end }}
{{- end }}

{{/* Health, by the listener of metrics: the process's own, and whether its store answers. */}}
{{- define "tidelog.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* A value as text: Helm has numbers of files as floats, and would write large ones as 2.6e+08. */}}
{{- define "tidelog.text" -}}
{{- if kindIs "float64" . }}{{ if eq (floor .) . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* Keys of a file of properties, in order. */}}
{{- define "tidelog.properties" -}}
{{- range $key, $value := . }}
{{ $key }}={{ include "tidelog.text" $value }}
{{- end }}
{{- end }}
