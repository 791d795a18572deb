{{- define "hello.labels" -}}
{app.kubernetes.io/name: hello-eks-anywhere, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}
