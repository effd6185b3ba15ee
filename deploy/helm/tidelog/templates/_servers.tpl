{{/* A server of HTTP: (dict "root" $ "component" "registry" "args" (list …) "tlsKeys" (list …)). */}}
{{- define "tidelog.server" -}}
{{- $own := get .root.Values .component }}
{{- $with := dict "root" .root "component" .component "values" .component }}
{{- $name := printf "%s-%s" (include "tidelog.fullname" .root) .component }}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "tidelog.metadata" $with | nindent 2 }}
data:
  {{ .component }}.properties: |
    # Settings of this {{ .component }}.
    {{- if $own.tls.secretName }}
    {{ .tlsKey }}=/etc/tidelog/tls
    {{- end }}
    {{- include "tidelog.properties" $own.config | nindent 4 }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "tidelog.metadata" $with | nindent 2 }}
spec:
  selector:
    {{- include "tidelog.selector" $with | nindent 4 }}
  ports:
    - {name: {{ ternary "https" "http" (ne $own.tls.secretName "") }}, port: {{ $own.port }}, targetPort: http}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "tidelog.metadata" $with | nindent 2 }}
spec:
  replicas: {{ $own.replicas }}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector:
    matchLabels:
      {{- include "tidelog.selector" $with | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "tidelog.podLabels" $with | nindent 8 }}
      annotations:
        checksum/config: {{ printf "%v %v" $own.config $own.tls | sha256sum }}
        {{- include "tidelog.podAnnotations" $with | nindent 8 }}
    spec:
      {{- include "tidelog.pod" $with | nindent 6 }}
      terminationGracePeriodSeconds: 60
      {{- if not .root.Values.lake.volume.enabled }}
      topologySpreadConstraints:
        {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - topologyKey: {{ . }}
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "tidelog.selector" $with | nindent 14 }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "tidelog.image" (dict "root" .root "image" .root.Values.image) }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          securityContext:
            {{- include "tidelog.containerSecurity" .root | nindent 12 }}
          args:
            {{- toYaml .args | nindent 12 }}
            - --listener
            - 0.0.0.0:{{ $own.port }}
            - --config
            - /etc/tidelog/{{ .component }}/{{ .component }}.properties
            - --metrics
            - 0.0.0.0:9404
            {{- if $own.authenticate }}
            - --authenticate
            {{- end }}
            {{- $names := $own.hostNames }}
            {{- if and $own.ingress.enabled $own.ingress.host }}{{ $names = append $names $own.ingress.host }}{{ end }}
            {{- range prepend $names (printf "%s.%s.svc.%s" $name .root.Release.Namespace .root.Values.clusterDomain) | uniq }}
            - --host-name
            - {{ . | quote }}
            {{- end }}
            {{- include "tidelog.otlp" .root | nindent 12 }}
            {{- include "tidelog.storeOptions" .root | nindent 12 }}
          env:
            {{- include "tidelog.env" .root | nindent 12 }}
            {{- include "tidelog.otlpEnv" .root | nindent 12 }}
            {{- with $own.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- include "tidelog.envFrom" (dict "root" .root "secret" $own.configSecret "sends" true) | nindent 10 }}
          ports:
            - {name: http, containerPort: {{ $own.port }}}
            - {name: metrics, containerPort: 9404}
          {{- include "tidelog.probes" .root | nindent 10 }}
          lifecycle:
            preStop: {exec: {command: [sleep, "5"]}}
          resources:
            {{- toYaml $own.resources | nindent 12 }}
          volumeMounts:
            {{- include "tidelog.mounts" $with | nindent 12 }}
            - {name: config, mountPath: /etc/tidelog/{{ .component }}, readOnly: true}
            {{- range $own.secrets }}
            - {name: secret-{{ . }}, mountPath: /run/secrets/{{ . }}, readOnly: true}
            {{- end }}
      volumes:
        {{- include "tidelog.volumes" $with | nindent 8 }}
        - name: config
          configMap: {name: {{ $name }}}
        {{- range $own.secrets }}
        - name: secret-{{ . }}
          secret: {secretName: {{ . }}, defaultMode: 0440}
        {{- end }}
{{- if $own.ingress.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "tidelog.metadata" $with | nindent 2 }}
  {{- with $own.ingress.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $own.ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with $own.ingress.tlsSecretName }}
  tls:
    - hosts: [{{ $own.ingress.host | quote }}]
      secretName: {{ . }}
  {{- end }}
  rules:
    - host: {{ required (printf "%s.ingress.host is the name by which clients call it" .component) $own.ingress.host | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ $name }}
                port: {number: {{ $own.port }}}
{{- end }}
{{- end }}
