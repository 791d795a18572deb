package release

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Types of provenance that other tools know: SLSA's predicate in an in-toto statement.
const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "https://github.com/drover-dev/drover/blob/main/docs/security.md#releases"
	builderID     = "https://github.com/drover-dev/drover/blob/main/Makefile"
	repository    = "git+https://github.com/drover-dev/drover"
)

// Source is what a release was built from.
type Source struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// envelope is a signed text (DSSE).
type envelope struct {
	PayloadType string              `json:"payloadType"`
	Payload     []byte              `json:"payload"`
	Signatures  []envelopeSignature `json:"signatures"`
}

type envelopeSignature struct {
	Signature []byte `json:"sig"`
}

// signed returns the text that signatures of an envelope cover.
func (e envelope) signed() []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
}

// statement says how files were built.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []subject  `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string     `json:"buildType"`
		ExternalParameters   Source     `json:"externalParameters"`
		ResolvedDependencies []material `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

type material struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

func newStatement(source Source, sums []Checksum) statement {
	s := statement{Type: statementType, PredicateType: predicateType}
	for _, sum := range sums {
		s.Subject = append(s.Subject, subject{Name: sum.Name, Digest: map[string]string{"sha256": sum.SHA256}})
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType, definition.ExternalParameters = buildType, source
	definition.ResolvedDependencies = []material{{URI: repository, Digest: map[string]string{"gitCommit": source.Commit}}}
	s.Predicate.RunDetails.Builder.ID = builderID
	return s
}

// signProvenance returns the provenance of files as a signed envelope.
func signProvenance(source Source, sums []Checksum, signer crypto.Signer) ([]byte, error) {
	payload, err := json.Marshal(newStatement(source, sums))
	if err != nil {
		return nil, err
	}
	e := envelope{PayloadType: payloadType, Payload: payload}
	signature, err := bundle.SignText(e.signed(), signer)
	if err != nil {
		return nil, err
	}
	e.Signatures = []envelopeSignature{{Signature: signature}}
	return json.Marshal(e)
}

// verifyProvenance returns the source of a file if one of the keys signed that.
func verifyProvenance(text []byte, sum Checksum, keys bundle.Keys) (Source, error) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return Source{}, fmt.Errorf("not an envelope: %w", err)
	}
	if !slices.ContainsFunc(e.Signatures, func(s envelopeSignature) bool {
		_, ok := keys.SignerOf(e.signed(), s.Signature)
		return ok
	}) {
		return Source{}, errors.New("not signed with a trusted key")
	}
	var s statement
	if err := json.Unmarshal(e.Payload, &s); err != nil || e.PayloadType != payloadType || s.PredicateType != predicateType {
		return Source{}, errors.New("not a SLSA provenance")
	}
	if !slices.ContainsFunc(s.Subject, func(about subject) bool {
		return about.Name == sum.Name && about.Digest["sha256"] == sum.SHA256
	}) {
		return Source{}, fmt.Errorf("it does not cover %q with sha256 %s", sum.Name, sum.SHA256)
	}
	return s.Predicate.BuildDefinition.ExternalParameters, nil
}
