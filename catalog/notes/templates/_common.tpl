{{- define "notes.labels" -}}
{app.kubernetes.io/name: notes, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}

{{- define "notes.pod" -}}
terminationGracePeriodSeconds: 1
automountServiceAccountToken: false
securityContext: {runAsUser: 65532, runAsGroup: 65532, runAsNonRoot: true, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "notes.container" -}}
image: {{ .Values.image }}
resources:
  requests: {cpu: 5m, memory: 8Mi}
  limits: {memory: 64Mi}
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
{{- end }}
