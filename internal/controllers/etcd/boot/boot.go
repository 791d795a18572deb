// Package boot writes the userdata of a machine that runs a member of etcd: a cloud-config with
// certificates, a kubelet that belongs to no cluster, and kubeadm's configuration of the static Pod
// that the kubelet runs. The machine has all programs and the image already. The package is pure.
// Start with Userdata.
package boot

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
)

// Ports of etcd.
const (
	ClientPort = "2379"
	PeerPort   = "2380"
)

// PeerName is the common name of the certificates of all members. Members accept no other client on
// their peer port, so the certificate of an API server is none of a member.
const PeerName = "etcd-member"

// Files on the machine. Simulated machines recognize a member by the second.
const (
	pkiDir     = "/etc/kubernetes/pki/etcd/"
	configFile = "/etc/kubernetes/etcd/kubeadm.yaml"
	kubelet    = "/var/lib/kubelet/config.yaml"
	dropIn     = "/etc/systemd/system/kubelet.service.d/90-etcd.conf"
)

// Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// Member is the member to boot.
type Member struct {
	// Name is that of the machine and the member.
	Name string
	// Address is what other members reach it at, Slot what clients will.
	Address, Slot string
	// Initial are the addresses of all members by name, including this one.
	Initial map[string]string
	// Existing means that the member joins others that run already.
	Existing bool
	// CA, Server and Peer are certificates. The key of the CA is not among them.
	CA           []byte
	Server, Peer Pair
	Spec         etcdbootstrapv1.EtcdadmConfigSpec
}

// Userdata returns the cloud-config.
func Userdata(m Member) ([]byte, error) {
	config, err := m.kubeadm()
	if err != nil {
		return nil, err
	}
	doc := map[string]any{
		"write_files": append(userFiles(m.Spec.Files),
			file(pkiDir+"ca.crt", m.CA), file(pkiDir+"server.crt", m.Server.Cert), file(pkiDir+"server.key", m.Server.Key),
			file(pkiDir+"peer.crt", m.Peer.Cert), file(pkiDir+"peer.key", m.Peer.Key),
			file(configFile, config), file(kubelet, []byte(kubeletConfig)), file(dropIn, []byte(kubeletDropIn)),
		),
		"runcmd": slices.Concat(m.Spec.PreEtcdadmCommands, []string{
			"kubeadm init phase etcd local --config " + configFile,
			"systemctl daemon-reload",
			"systemctl enable kubelet",
			"systemctl restart kubelet",
		}, m.Spec.PostEtcdadmCommands),
	}
	if len(m.Spec.Users) > 0 {
		doc["users"] = users(m.Spec.Users)
	}
	if ntp := m.Spec.NTP; ntp != nil {
		doc["ntp"] = ntp
	}
	data, err := yaml.Marshal(doc)
	return append([]byte("#cloud-config\n"), data...), err
}

// kubeletConfig makes the kubelet run static Pods and nothing else. Nobody can talk to it.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: false
authorization:
  mode: AlwaysAllow
enableServer: false
staticPodPath: /etc/kubernetes/manifests
`

// kubeletDropIn takes away the kubeconfig that kubeadm's unit passes to the kubelet.
const kubeletDropIn = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS="
`

// kubeadm returns the configuration from which kubeadm writes the static Pod, with the image of the
// machine's version. Etcd listens on all addresses, since the machine does not have its own yet.
func (m Member) kubeadm() ([]byte, error) {
	cluster := map[string]any{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
		"etcd": map[string]any{"local": map[string]any{"dataDir": "/var/lib/etcd", "extraArgs": m.flags()}},
	}
	if m.Spec.Version != "" {
		cluster["kubernetesVersion"] = m.Spec.Version
	}
	local := map[string]any{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
		"nodeRegistration": map[string]any{"name": m.Name},
		"localAPIEndpoint": map[string]any{"advertiseAddress": m.Address},
	}
	first, err := yaml.Marshal(cluster)
	if err != nil {
		return nil, err
	}
	second, err := yaml.Marshal(local)
	return fmt.Appendf(nil, "%s---\n%s", first, second), err
}

type flag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// flags are those that differ from kubeadm's. Other members are identified by the name in their
// certificate instead of the address that they connect from, which is not known beforehand.
func (m Member) flags() []flag {
	state := "new"
	if m.Existing {
		state = "existing"
	}
	var initial []string
	for name, address := range m.Initial {
		initial = append(initial, name+"="+PeerURL(address))
	}
	slices.Sort(initial)
	out := []flag{
		{"name", m.Name},
		{"listen-client-urls", "https://0.0.0.0:" + ClientPort},
		{"listen-peer-urls", "https://0.0.0.0:" + PeerPort},
		{"advertise-client-urls", ClientURL(m.Slot)},
		{"initial-advertise-peer-urls", PeerURL(m.Address)},
		{"initial-cluster", strings.Join(initial, ",")},
		{"initial-cluster-state", state},
		{"peer-cert-allowed-cn", PeerName},
		{"peer-skip-client-san-verification", "true"},
	}
	if m.Spec.CipherSuites != "" {
		out = append(out, flag{"cipher-suites", m.Spec.CipherSuites})
	}
	return out
}

// ClientURL returns the URL for clients at an address.
func ClientURL(address string) string { return "https://" + net.JoinHostPort(address, ClientPort) }

// PeerURL returns the URL for other members at an address.
func PeerURL(address string) string { return "https://" + net.JoinHostPort(address, PeerPort) }

func file(path string, content []byte) map[string]any {
	return map[string]any{"path": path, "owner": "root:root", "permissions": "0600", "content": string(content)}
}

func userFiles(files []etcdbootstrapv1.File) []map[string]any {
	var out []map[string]any
	for _, f := range files {
		entry := map[string]any{"path": f.Path, "content": f.Content}
		for key, value := range map[string]string{"owner": f.Owner, "permissions": f.Permissions, "encoding": f.Encoding} {
			if value != "" {
				entry[key] = value
			}
		}
		if f.Append {
			entry["append"] = true
		}
		out = append(out, entry)
	}
	return out
}

func users(all []etcdbootstrapv1.User) []any {
	out := []any{"default"}
	for _, u := range all {
		entry := map[string]any{"name": u.Name, "lock_passwd": true}
		for key, value := range map[string]string{"groups": u.Groups, "shell": u.Shell, "sudo": u.Sudo} {
			if value != "" {
				entry[key] = value
			}
		}
		if len(u.SSHAuthorizedKeys) > 0 {
			entry["ssh_authorized_keys"] = u.SSHAuthorizedKeys
		}
		out = append(out, entry)
	}
	return out
}
