package build

import corev1 "k8s.io/api/core/v1"

const (
	auditFile = "/etc/kubernetes/audit-policy.yaml"
	auditDir  = "/var/log/kubernetes"
)

// auditPolicy is the default: it records who changed what, without contents, and skips leases and
// health checks.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  resources:
  - group: ""
    resources: [events]
  - group: events.k8s.io
    resources: [events]
  - group: coordination.k8s.io
    resources: [leases]
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/version", "/metrics"]
- level: None
  verbs: [get, list, watch]
  userGroups: ["system:nodes", "system:serviceaccounts:kube-system"]
- level: Metadata
`

// audit enables the audit log of API servers.
func (b *builder) audit(m *machines) error {
	policy := b.cluster.Spec.ControlPlaneConfiguration.AuditPolicyContent
	if policy == "" {
		policy = auditPolicy
	}
	m.file(auditFile, policy)
	m.mount("audit-policy", auditFile, corev1.HostPathFile)
	m.mount("audit-log", auditDir, corev1.HostPathDirectoryOrCreate)
	m.apiServer(
		[2]string{"audit-policy-file", auditFile},
		[2]string{"audit-log-path", auditDir + "/api-audit.log"},
		[2]string{"audit-log-maxage", "30"},
		[2]string{"audit-log-maxbackup", "10"},
		[2]string{"audit-log-maxsize", "512"},
	)
	return nil
}
