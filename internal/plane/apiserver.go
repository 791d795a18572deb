package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/atomicfile"
)

const (
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1"
	// watchGrace is how long a server that exits waits for its watches to end.
	watchGrace = 5 * time.Second
)

func (p *Plane) apiserver() Component {
	return Component{
		Name:    "kube-apiserver",
		Command: func() *exec.Cmd { return p.program("kube-apiserver", p.apiserverArgs()...) },
		Probe:   func(ctx context.Context) error { return p.probes.get(ctx, p.config.APIURL()+"/readyz") },
	}
}

func (p *Plane) apiserverArgs() []string {
	h, c := p.home, p.config
	return []string{
		"--bind-address=" + c.APIAddress,
		fmt.Sprintf("--secure-port=%d", c.APIPort),
		"--tls-cert-file=" + h.certFile("apiserver"),
		"--tls-private-key-file=" + h.keyFile("apiserver"),
		"--client-ca-file=" + h.certFile("ca"),
		"--etcd-servers=" + loopbackURL(c.Ports.EtcdClient),
		"--etcd-cafile=" + h.certFile("etcd-ca"),
		"--etcd-certfile=" + h.certFile("etcd-client"),
		"--etcd-keyfile=" + h.keyFile("etcd-client"),
		"--authorization-mode=RBAC",
		"--authentication-config=" + h.authenticationFile(),
		"--encryption-provider-config=" + h.encryptionFile(),
		// Webhooks reject everyone else.
		"--admission-control-config-file=" + h.admissionFile(),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + h.serviceAccountPublicKey(),
		"--service-account-signing-key-file=" + h.keyFile("service-account"),
		"--service-cluster-ip-range=" + serviceCIDR,
		// No Pod reaches this server through the "kubernetes" Service, and the address of a
		// loopback listener is no valid endpoint.
		"--endpoint-reconciler-type=none",
		"--advertise-address=" + advertised(c.APIAddress),
		"--audit-policy-file=" + h.auditPolicyFile(),
		"--audit-log-path=" + h.path("logs", "audit.log"),
		"--audit-log-maxsize=50", "--audit-log-maxbackup=5", "--audit-log-maxage=30", "--audit-log-compress",
		withoutCache(workloadKinds),
		// Without it, watches keep a server that restarts from exiting until it is killed.
		"--shutdown-watch-termination-grace-period=" + watchGrace.String(),
		"--profiling=false",
	}
}

// advertised returns a value that keeps the server from searching for a default route, which a
// machine without a network lacks.
func advertised(address string) string {
	if address == "0.0.0.0" || address == "::" {
		return "127.0.0.1"
	}
	return address
}

func (h Home) authenticationFile() string { return h.path("run", "authentication.yaml") }
func (h Home) auditPolicyFile() string    { return h.path("run", "audit-policy.yaml") }
func (h Home) admissionFile() string      { return h.path("run", "admission.yaml") }

// writeAPIServerFiles writes what the API server reads at its start besides certificates and keys.
func (h Home) writeAPIServerFiles(c Config) error {
	webhooks := h.componentKubeconfig("webhooks")
	access := config.WebhookKubeconfig(loopback(c.Ports.ManagerWebhook), h.certFile("webhook-client"), h.keyFile("webhook-client"))
	if err := errors.Join(
		atomicfile.Write(webhooks, access, 0o600),
		atomicfile.Write(h.admissionFile(), config.AdmissionConfiguration(webhooks), 0o600),
	); err != nil {
		return err
	}
	files := map[string]any{
		h.authenticationFile(): authentication(),
		h.auditPolicyFile():    auditPolicy(),
	}
	for path, content := range files {
		data, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("encoding %q: %w", path, err)
		}
		if err := atomicfile.Write(path, data, 0o600); err != nil {
			return err
		}
	}
	// The server creates its audit log itself; made here, it is private.
	f, err := os.OpenFile(h.path("logs", "audit.log"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating the audit log: %w", err)
	}
	return f.Close()
}

// authentication allows anonymous requests only for health endpoints.
func authentication() apiserverv1.AuthenticationConfiguration {
	return apiserverv1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthenticationConfiguration"},
		Anonymous: &apiserverv1.AnonymousAuthConfig{
			Enabled:    true,
			Conditions: []apiserverv1.AnonymousAuthCondition{{Path: "/livez"}, {Path: "/readyz"}, {Path: "/healthz"}},
		},
	}
}

// auditPolicy records who changed what, and who read a Secret; never the content of anything.
func auditPolicy() auditv1.Policy {
	return auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived},
		Rules: []auditv1.PolicyRule{
			{Level: auditv1.LevelNone, NonResourceURLs: []string{"/livez*", "/readyz*", "/healthz*", "/version", "/openapi*", "/api", "/api/*", "/apis", "/apis/*"}},
			{Level: auditv1.LevelNone, Resources: []auditv1.GroupResources{{Group: "coordination.k8s.io", Resources: []string{"leases"}}, {Resources: []string{"events"}}, {Group: "events.k8s.io", Resources: []string{"events"}}}},
			{Level: auditv1.LevelNone, Users: []string{"system:apiserver"}},
			{Level: auditv1.LevelMetadata, Verbs: []string{"create", "update", "patch", "delete", "deletecollection"}},
			{Level: auditv1.LevelNone, Users: []string{managerUser, "system:kube-controller-manager", "drover:supervisor"}},
			{Level: auditv1.LevelMetadata, Verbs: []string{"get", "list", "watch"}, Resources: []auditv1.GroupResources{{Resources: []string{"secrets"}}}},
			{Level: auditv1.LevelNone, Verbs: []string{"get", "list", "watch"}},
			{Level: auditv1.LevelMetadata},
		},
	}
}
