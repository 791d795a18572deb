package encryption

import (
	"fmt"
	"reflect"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Facts are what the next state depends on.
type Facts struct {
	Cluster *anywherev1.Cluster
	// ControlPlane is the existing control plane; nil for a new cluster.
	ControlPlane *controlplanev1.KubeadmControlPlane
	// Version is the Kubernetes version that the control plane will have.
	Version string
	// RolledOut means that all control plane machines match ControlPlane, and no others exist.
	RolledOut bool
	// Rotation is the current request for a rotation, if any.
	Rotation string
	// NewKey generates a key.
	NewKey func() (apiserverv1.Key, error)
}

// Next returns the state that follows, or the same if nothing is to be done. A nil state means that
// the cluster has no key of its own.
func Next(s *State, f Facts) (*State, error) {
	if s == nil {
		return first(f)
	}
	switch s.Stage {
	case Adding:
		if w := wantedBy(f.Cluster); w.kind != nothing && !w.matches(s.New) {
			return settled(s.abort(), f)
		}
		if f.runs(s) {
			return s.to(Switching, s.Revision+1), nil
		}
	case Switching:
		if f.runs(s) {
			return s.to(Rewriting, s.Revision), nil
		}
	case Settled:
		return settled(s, f)
	}
	return s, nil
}

// runs reports whether all API servers run with the configuration of a state.
func (f Facts) runs(s *State) bool {
	_, key := Reference(f.ControlPlane)
	return f.RolledOut && key == s.FileKey(f.Cluster)
}

// first returns the state of a cluster that has none. A plugin that encrypts from the start needs
// no state until it is replaced. An existing management cluster gets a key when an upgrade replaces
// its control plane machines anyway.
func first(f Facts) (*State, error) {
	w, current := wantedBy(f.Cluster), currentOf(f.ControlPlane)
	before := &State{Old: current, Rotation: f.Rotation}
	switch kms := current[0].KMS; {
	case w.kind == nothing && kms != nil:
		return nil, fmt.Errorf("plugin %q encrypted Secrets, which could not be read without it", kms.Name)
	case w.kind == plugin && kms != nil && kms.Name+secretsSuffix != w.kms.Name:
		return before.begin(apiserverv1.ProviderConfiguration{KMS: w.kms}), nil
	case w.kind != ownKey, f.ControlPlane != nil && !w.explicit && kms == nil && f.ControlPlane.Spec.Version == f.Version:
		return nil, nil
	}
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	if f.ControlPlane == nil {
		return &State{Stage: Settled, Revision: 1, Old: []apiserverv1.ProviderConfiguration{key}, Rotation: f.Rotation}, nil
	}
	return before.begin(key), nil
}

// settled begins a change if the spec wants another provider, or somebody requested a rotation.
func settled(s *State, f Facts) (*State, error) {
	w, now := wantedBy(f.Cluster), s.Old[0]
	switch {
	case w.kind == plugin && samePlugin(now, w.kms):
		return s.reach(w.kms), nil
	case w.kind == plugin:
		return s.begin(apiserverv1.ProviderConfiguration{KMS: w.kms}), nil
	case w.kind == ownKey && now.Secretbox == nil, now.Secretbox != nil && f.Rotation != "" && f.Rotation != s.Rotation:
		key, err := f.key()
		if err != nil {
			return nil, err
		}
		out := s.begin(key)
		out.Rotation = f.Rotation
		return out, nil
	}
	return s, nil
}

// reach returns a state whose plugin, with the same keys, is at the address that a spec wants.
func (s *State) reach(wanted *apiserverv1.KMSConfiguration) *State {
	kms := *wanted
	kms.Name = s.Old[0].KMS.Name
	if reflect.DeepEqual(s.Old[0].KMS, &kms) {
		return s
	}
	out := s.to(Settled, s.Revision)
	out.Old = append([]apiserverv1.ProviderConfiguration{{KMS: &kms}}, s.Old[1:]...)
	return out
}

func (f Facts) key() (apiserverv1.ProviderConfiguration, error) {
	key, err := f.NewKey()
	return apiserverv1.ProviderConfiguration{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{key}}}, err
}
