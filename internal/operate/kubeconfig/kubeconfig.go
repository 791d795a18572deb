// Package kubeconfig connects commands to the cluster that a kubeconfig names, and writes the
// kubeconfig of a cluster into files that may contain others. It marks the entries that it writes
// and never replaces an entry without its mark. Start with Connect or Parse.
package kubeconfig

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/drover-dev/drover/internal/workload/safeconfig"
)

// extension is the name of the mark.
const extension = "drover"

// Origin identifies the cluster of an entry.
type Origin struct {
	// Plane is the API server of the management plane.
	Plane     string `json:"plane"`
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
}

// Kubeconfig is the kubeconfig of one cluster.
type Kubeconfig struct {
	// Context is the name of its context.
	Context string
	origin  Origin
	// namespace is the default namespace of the context.
	namespace string
	cluster   *clientcmdapi.Cluster
	user      *clientcmdapi.AuthInfo
	names     names
}

// names are the names of the cluster and user entries in a file.
type names struct{ cluster, user string }

// Parse reads the current context of a kubeconfig from a Secret, which must not name files or
// programs of its reader. Who reads the Secret has checked whether it may skip the verification of
// the server. If context is not empty, all entries are renamed to it.
func Parse(data []byte, origin Origin, context string) (*Kubeconfig, error) {
	cfg, err := safeconfig.Load(data, safeconfig.Policy{InsecureTLS: true})
	if err != nil {
		return nil, fmt.Errorf("parsing the kubeconfig of cluster %q: %w", origin.Cluster, err)
	}
	current := cfg.Contexts[cfg.CurrentContext]
	k := &Kubeconfig{
		Context: cfg.CurrentContext, origin: origin, namespace: current.Namespace, names: names{cluster: current.Cluster, user: current.AuthInfo},
		cluster: cfg.Clusters[current.Cluster], user: cfg.AuthInfos[current.AuthInfo],
	}
	if context != "" {
		k.Context, k.names = context, names{cluster: context, user: context}
	}
	return k, nil
}

// Encode returns a kubeconfig with nothing but the entries of the cluster.
func (k *Kubeconfig) Encode() ([]byte, error) {
	cfg := clientcmdapi.NewConfig()
	if err := k.addTo(cfg); err != nil {
		return nil, err
	}
	return clientcmd.Write(*cfg)
}

// addTo adds or replaces the entries of the cluster and keeps all others. It sets the current
// context only if there is none.
func (k *Kubeconfig) addTo(cfg *clientcmdapi.Config) error {
	if err := k.mayReplace(cfg); err != nil {
		return err
	}
	mark, err := k.origin.mark()
	if err != nil {
		return err
	}
	cluster, user := k.cluster.DeepCopy(), k.user.DeepCopy()
	cluster.Extensions, user.Extensions = mark, mark
	cfg.Clusters[k.names.cluster], cfg.AuthInfos[k.names.user] = cluster, user
	cfg.Contexts[k.Context] = &clientcmdapi.Context{Cluster: k.names.cluster, AuthInfo: k.names.user, Namespace: k.namespace, Extensions: mark}
	if cfg.CurrentContext == "" {
		cfg.CurrentContext = k.Context
	}
	return nil
}

// ForeignError means that an entry of the same name belongs to another cluster.
type ForeignError struct{ Kind, Name string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s %q belongs to another cluster; choose another name with --context", e.Kind, e.Name)
}

func (k *Kubeconfig) mayReplace(cfg *clientcmdapi.Config) error {
	if c := cfg.Contexts[k.Context]; c != nil && !k.origin.marked(c.Extensions) {
		return &ForeignError{"context", k.Context}
	}
	if c := cfg.Clusters[k.names.cluster]; c != nil && !k.origin.marked(c.Extensions) {
		return &ForeignError{"cluster", k.names.cluster}
	}
	if u := cfg.AuthInfos[k.names.user]; u != nil && !k.origin.marked(u.Extensions) {
		return &ForeignError{"user", k.names.user}
	}
	return nil
}

func (o Origin) mark() (map[string]runtime.Object, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("marking the kubeconfig of cluster %q: %w", o.Cluster, err)
	}
	return map[string]runtime.Object{extension: &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}}, nil
}

func (o Origin) marked(extensions map[string]runtime.Object) bool {
	unknown, ok := extensions[extension].(*runtime.Unknown)
	if !ok {
		return false
	}
	var found Origin
	return json.Unmarshal(unknown.Raw, &found) == nil && found == o
}
