package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/tags"
	"github.com/drover-dev/drover/internal/metal/userdata"
)

// bootstrap is the node configuration in userdata.
type bootstrap struct {
	controlPlane bool
	// clusterID is the hash of the cluster's CA, which control planes know from the certificate and
	// workers from their join configuration.
	clusterID     string
	nodeName      string
	providerID    string
	version       string
	labels        map[string]string
	taints        []corev1.Taint
	configuration string
	port          uint16
	// names are additional names of the API server, above all the endpoint of the cluster.
	names      []string
	ca, etcdCA keyPair
	// endpoint is the address of the cluster's endpoint, if it is an address.
	endpoint netip.Addr
	// kubeVIP means that kube-vip runs on the machine and announces the endpoint.
	kubeVIP bool
}

// keyPair is the files of a CA.
type keyPair struct{ cert, key []byte }

// parseUserdata returns the node that a machine becomes, or nil if it becomes none.
func parseUserdata(m driver.Machine) (*bootstrap, error) {
	plan, err := userdata.Parse(m.Userdata, m.Variables())
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, f := range plan.Files {
		files[f.Path] = string(f.Content)
	}
	b, err := readKubeadm(files, m)
	if b != nil {
		b.kubeVIP = mentions(plan, "kube-vip")
	}
	return b, err
}

// mentions reports whether a file or command contains a word.
func mentions(plan userdata.Plan, word string) bool {
	return slices.ContainsFunc(plan.Files, func(f userdata.File) bool { return bytes.Contains(f.Content, []byte(word)) }) ||
		slices.ContainsFunc(plan.Commands, func(c userdata.Command) bool {
			return strings.Contains(c.Line+" "+strings.Join(c.Words, " "), word)
		})
}

// kubeadmDocument is the supported part of kubeadm's configuration.
type kubeadmDocument struct {
	APIVersion        string           `json:"apiVersion"`
	Kind              string           `json:"kind"`
	KubernetesVersion string           `json:"kubernetesVersion"`
	Endpoint          string           `json:"controlPlaneEndpoint"`
	LocalAPIEndpoint  apiEndpoint      `json:"localAPIEndpoint"`
	NodeRegistration  nodeRegistration `json:"nodeRegistration"`
	APIServer         struct {
		CertSANs []string `json:"certSANs"`
	} `json:"apiServer"`
	ControlPlane *struct {
		LocalAPIEndpoint apiEndpoint `json:"localAPIEndpoint"`
	} `json:"controlPlane"`
	Discovery struct {
		BootstrapToken struct {
			Endpoint     string   `json:"apiServerEndpoint"`
			CACertHashes []string `json:"caCertHashes"`
		} `json:"bootstrapToken"`
	} `json:"discovery"`
}

type apiEndpoint struct {
	BindPort uint16 `json:"bindPort"`
}

type nodeRegistration struct {
	Name             string          `json:"name"`
	KubeletExtraArgs json.RawMessage `json:"kubeletExtraArgs"`
	Taints           *[]corev1.Taint `json:"taints"`
}

func readKubeadm(files map[string]string, m driver.Machine) (*bootstrap, error) {
	b := &bootstrap{nodeName: m.Hostname, version: tags.KubernetesVersion(m.Tags), port: apiPort, labels: map[string]string{}}
	found := false
	for path, content := range files {
		if !strings.Contains(content, "kubeadm.k8s.io/") || !strings.HasPrefix(path, "/run/kubeadm/") && !strings.HasSuffix(path, ".yaml") {
			continue
		}
		for doc := range strings.SplitSeq("\n"+content, "\n---") {
			known, err := b.read(doc)
			if err != nil {
				return nil, fmt.Errorf("file %q: %w", path, err)
			}
			found = found || known
		}
	}
	if !found {
		return nil, nil
	}
	b.ca = keyPair{[]byte(files["/etc/kubernetes/pki/ca.crt"]), []byte(files["/etc/kubernetes/pki/ca.key"])}
	b.etcdCA = keyPair{[]byte(files["/etc/kubernetes/pki/etcd/ca.crt"]), []byte(files["/etc/kubernetes/pki/etcd/ca.key"])}
	if err := b.identify(); err != nil {
		return nil, err
	}
	return b, nil
}

// read applies one document. It returns false if the document is not part of kubeadm's
// configuration.
func (b *bootstrap) read(text string) (bool, error) {
	var doc kubeadmDocument
	if err := safeyaml.Unmarshal([]byte(text), &doc); err != nil {
		return false, fmt.Errorf("reading kubeadm's configuration: %w", err)
	}
	if !strings.HasPrefix(doc.APIVersion, "kubeadm.k8s.io/") {
		return false, nil
	}
	switch doc.Kind {
	case "ClusterConfiguration":
		b.configuration, b.controlPlane = strings.TrimSpace(text)+"\n", true
		b.addNames(append(doc.APIServer.CertSANs, hostOf(doc.Endpoint))...)
		b.setEndpoint(doc.Endpoint)
		if b.version == "" {
			b.version = doc.KubernetesVersion
		}
	case "InitConfiguration":
		b.controlPlane = true
		b.setPort(doc.LocalAPIEndpoint)
		return true, b.register(doc.NodeRegistration)
	case "JoinConfiguration":
		if doc.ControlPlane != nil {
			b.controlPlane = true
			b.setPort(doc.ControlPlane.LocalAPIEndpoint)
		}
		b.addNames(hostOf(doc.Discovery.BootstrapToken.Endpoint))
		b.setEndpoint(doc.Discovery.BootstrapToken.Endpoint)
		for _, hash := range doc.Discovery.BootstrapToken.CACertHashes {
			b.clusterID = hash
		}
		return true, b.register(doc.NodeRegistration)
	default:
		return false, nil
	}
	return true, nil
}

func (b *bootstrap) addNames(names ...string) {
	for _, name := range names {
		if name != "" && !slices.Contains(b.names, name) {
			b.names = append(b.names, name)
		}
	}
}

// hostOf returns the host of an endpoint with or without a port.
func hostOf(endpoint string) string {
	if host, _, err := net.SplitHostPort(endpoint); err == nil {
		return host
	}
	return endpoint
}

func (b *bootstrap) setEndpoint(endpoint string) {
	if a, err := netip.ParseAddr(hostOf(endpoint)); err == nil {
		b.endpoint = a
	}
}

func (b *bootstrap) setPort(e apiEndpoint) {
	if e.BindPort != 0 {
		b.port = e.BindPort
	}
}

func (b *bootstrap) register(r nodeRegistration) error {
	if r.Name != "" {
		b.nodeName = r.Name
	}
	if r.Taints != nil {
		b.taints = *r.Taints
	} else if b.controlPlane {
		b.taints = []corev1.Taint{{Key: controlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}}
	}
	args, err := extraArgs(r.KubeletExtraArgs)
	if err != nil {
		return err
	}
	b.providerID = args["provider-id"]
	for label := range strings.SplitSeq(args["node-labels"], ",") {
		if key, value, found := strings.Cut(label, "="); found {
			b.labels[key] = value
		}
	}
	return nil
}

// extraArgs reads both encodings of arguments: a map, and a list of pairs.
func extraArgs(raw json.RawMessage) (map[string]string, error) {
	args := map[string]string{}
	if len(raw) == 0 || json.Unmarshal(raw, &args) == nil {
		return args, nil
	}
	var pairs []struct{ Name, Value string }
	if err := json.Unmarshal(raw, &pairs); err != nil {
		return nil, fmt.Errorf("reading kubeletExtraArgs: %w", err)
	}
	for _, p := range pairs {
		args[p.Name] = p.Value
	}
	return args, nil
}

// identify determines the cluster of the node.
func (b *bootstrap) identify() error {
	if block, _ := pem.Decode(b.ca.cert); block != nil {
		id, err := caHash(block.Bytes)
		b.clusterID = id
		return err
	}
	if b.controlPlane {
		return errors.New("the userdata of the control plane lacks /etc/kubernetes/pki/ca.crt")
	}
	if b.clusterID == "" {
		return errors.New("the join configuration has no caCertHashes to identify the cluster")
	}
	return nil
}

func publicKeyHash(spki []byte) string {
	sum := sha256.Sum256(spki)
	return "sha256:" + hex.EncodeToString(sum[:])
}
