{{- define "cni.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - name: NODE_NAME
    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  # Forwarding is switched on in /proc, which only a privileged container may write.
  privileged: true
  readOnlyRootFilesystem: true
volumeMounts:
  - {name: conf, mountPath: /etc/cni/net.d}
{{- end }}
