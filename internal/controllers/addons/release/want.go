package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// gatherWant gathers what the release should be. It reuses the last fingerprint if its inputs
// haven't changed.
func (v *visit) gatherWant(ctx context.Context, f *facts) {
	input := tool.Input{Sources: v.Values, Access: v.Policy, OfPackage: f.ofPackage}
	var err error
	if f.want, err = input.WithoutValues(ctx, v.release); err != nil {
		f.packageProblem = inputProblem(err)
		return
	}
	if f.documents, err = input.Documents(ctx, v.release); err != nil {
		f.packageProblem = inputProblem(err)
		return
	}
	from := v.inputs(f.documents)
	known, ok := v.memory.fingerprintFor(v.key(), from)
	if !ok {
		if f.packageProblem = f.readValues(); f.packageProblem != nil {
			return
		}
	}
	if f.want.Resolved, f.packageProblem = v.resolutions.resolve(f.want.Package, v.key()); f.packageProblem != nil {
		return
	}
	f.floating = floating(v.release.Spec.Version)
	if !ok || known.digest != f.want.Resolved.Digest {
		if f.packageProblem = f.readValues(); f.packageProblem != nil {
			return
		}
		known = fingerprinted{inputs: from, digest: f.want.Resolved.Digest, fingerprint: fingerprint(f.want, v.release.Spec.Tool, v.release.Spec.ServiceAccountName)}
		v.memory.setFingerprint(v.key(), known)
	}
	f.fingerprint = known.fingerprint
}

// readValues merges the documents into values, once.
func (f *facts) readValues() *problem {
	if f.want.Values != nil {
		return nil
	}
	var err error
	if f.want.Values, err = tool.Merge(f.documents); err != nil {
		return &problem{reason: addonsv1.ValueParsingFailedReason, message: message(err)}
	}
	return nil
}

// complete returns the wanted state for an operation, with values. It shares nothing with the
// object, which the operation may outlive.
func (f *facts) complete() (tool.Want, error) {
	if p := f.readValues(); p != nil {
		return tool.Want{}, errors.New(p.message)
	}
	want, spec := f.want, f.spec.DeepCopy()
	want.Options = spec.Options
	if want.Health != nil {
		want.Health = spec.Health
	}
	if want.Ignore != nil {
		want.Ignore = spec.Drift.Ignore
	}
	return want, nil
}

// inputs identifies everything that a fingerprint depends on except the chart.
func (v *visit) inputs(documents [][]byte) [sha256.Size]byte {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %d", v.release.UID, v.release.Generation)
	for _, d := range documents {
		fmt.Fprintf(sum, " %d:", len(d))
		sum.Write(d)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// fingerprint changes with everything that makes another release: the chart, the values, the
// options and the account. A new account must be able to install the release.
func fingerprint(w tool.Want, name addonsv1.Tool, account string) string {
	parts := []any{name, w.Resolved.Digest, w.Values, w.Options}
	if account != "" {
		parts = append(parts, account)
	}
	data, _ := json.Marshal(parts) // values came from YAML, and maps are sorted
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// inputProblem waits for an event if an object is missing, and retries otherwise.
func inputProblem(err error) *problem {
	p := &problem{reason: addonsv1.ValueParsingFailedReason, message: message(err), after: firstRetry}
	if input := new(tool.InputError); errors.As(err, &input) {
		p.reason = input.Reason
		switch {
		case input.Missing():
			p.after = 0
		case errors.As(err, new(*delegation.DeniedError)):
			p.after = delegation.DeniedFor
		}
	}
	return p
}

// message returns an error as the message of a condition.
func message(err error) string { return text.Truncate(text.Sentence(err.Error())) }
