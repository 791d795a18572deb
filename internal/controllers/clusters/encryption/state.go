// Package encryption decides how the API servers of a cluster encrypt Secrets in etcd, and encrypts
// stored Secrets again after a change. It owns the Secret that holds a cluster's keys.
//
// The first provider of an API server encrypts, all of them decrypt. API servers are replaced one
// after the other, so each learns to decrypt before any of them encrypts:
//
//	new cluster        Settled [A]
//	existing cluster   Adding [none A] ──▶ Switching [A none] ──▶ Rewriting ──▶ Settled [A]
//	rotation           Adding [A B]    ──▶ Switching [B A]    ──▶ Rewriting ──▶ Settled [B]
//	another spec       Adding [A B]    ──▶ Settled [A] or Adding [A C]
//
// Nothing is encrypted with a new provider before Switching, so a plugin that doesn't work can be
// corrected or given up until then. Adding and Switching end when all control plane machines were
// replaced, Rewriting when every Secret was written once more. The stage is stored with the keys,
// so that a change survives a restart and a move. Keys are in no log, condition or spec. Start with
// Next, which is pure; Controller does the rewriting.
package encryption

import (
	"fmt"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Stage is a step of a change.
type Stage string

// The stages.
const (
	// Settled: one provider encrypts all Secrets.
	Settled Stage = anywherev1.EncryptionSettled
	// Adding: API servers learn to decrypt what the new provider encrypts.
	Adding Stage = "Adding"
	// Switching: API servers begin to encrypt with the new provider.
	Switching Stage = "Switching"
	// Rewriting: stored Secrets are encrypted with the new provider.
	Rewriting Stage = "Rewriting"
)

// State is how a cluster encrypts its Secrets.
type State struct {
	Stage Stage `json:"stage"`
	// Revision counts the changes that replace machines.
	Revision int `json:"revision"`
	// Old are the providers before a change, in order; the only ones if it is settled.
	Old []apiserverv1.ProviderConfiguration `json:"old"`
	// New is the provider that a change introduces.
	New *apiserverv1.ProviderConfiguration `json:"new,omitempty"`
	// Rotation is the last request for which a rotation was begun.
	Rotation string `json:"rotation,omitempty"`
}

// String keeps keys out of logs.
func (s *State) String() string { return fmt.Sprintf("%s, revision %d", s.Stage, s.Revision) }

// Providers returns the providers of API servers, in order.
func (s *State) Providers() []apiserverv1.ProviderConfiguration {
	var out []apiserverv1.ProviderConfiguration
	switch s.Stage {
	case Adding:
		out = append(append(out, s.Old...), *s.New)
	case Switching, Rewriting:
		out = append(append(out, *s.New), s.Old...)
	default:
		out = append(out, s.Old...)
	}
	return out
}

// Finish ends a change whose Secrets were all rewritten. Machines keep their configuration, which
// still has the old provider; those created from now on don't get it.
func (s *State) Finish() *State {
	if s.Stage != Rewriting {
		return s
	}
	return &State{Stage: Settled, Revision: s.Revision, Old: []apiserverv1.ProviderConfiguration{*s.New}, Rotation: s.Rotation}
}

// begin begins the change to a new provider.
func (s *State) begin(next apiserverv1.ProviderConfiguration) *State {
	return &State{Stage: Adding, Revision: s.Revision + 1, Old: s.Old, New: &next, Rotation: s.Rotation}
}

// abort gives up a new provider that has not encrypted anything yet. The revision is new, because
// machines may have been created with the provider.
func (s *State) abort() *State {
	return &State{Stage: Settled, Revision: s.Revision + 1, Old: s.Old, Rotation: s.Rotation}
}

// to returns the state in another stage. Stages up to Rewriting keep all providers.
func (s *State) to(stage Stage, revision int) *State {
	out := *s
	out.Stage, out.Revision = stage, revision
	return &out
}
