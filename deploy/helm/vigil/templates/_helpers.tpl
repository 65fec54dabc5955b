{{- define "vigil.name" -}}vigil-{{ .Values.practice }}{{- end }}

{{- define "vigil.selector" -}}
app.kubernetes.io/name: vigil
app.kubernetes.io/instance: {{ .Values.practice }}
{{- end }}

{{- define "vigil.labels" -}}
{{ include "vigil.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "vigil.image" -}}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{- end }}
{{- define "vigil.secret" -}}{{ .Values.secretName | default (include "vigil.name" .) }}{{- end }}
{{- define "vigil.replicaSecret" -}}{{ .Values.replica.secretName | default (printf "%s-replica" (include "vigil.name" .)) }}{{- end }}

{{/* The security context of every pod: Kubernetes' level "restricted". */}}
{{- define "vigil.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "vigil.locked" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "vigil.env" -}}
{{- $own := dict "VIGIL_ENVIRONMENT" "production" "VIGIL_PUBLIC_URL" (printf "https://%s" .Values.host) "VIGIL_METRICS_ADDR" "0.0.0.0:9090" "VIGIL_TRUSTED_PROXY_HEADERS" "X-Forwarded-For" "VIGIL_TRUSTED_PROXIES" .Values.trustedProxies }}
{{- range $name, $value := merge $own .Values.settings }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "vigil.replicaEnv" -}}
- { name: VIGIL_DATA, value: /data }
{{- with .Values.replica.url }}
- { name: REPLICA_URL, value: {{ . | quote }} }
{{- end }}
{{- end }}
