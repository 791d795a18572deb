package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// gatherWant finds out what the release should be. Values that are known already are not read again: most of the time nothing has changed.
func (v *visit) gatherWant(ctx context.Context, f *facts) {
	input := tool.Input{Sources: v.Values}
	var err error
	if f.want, err = input.WithoutValues(ctx, v.release); err != nil {
		f.pack = inputProblem(err)
		return
	}
	if f.documents, err = input.Documents(ctx, v.release); err != nil {
		f.pack = inputProblem(err)
		return
	}
	from := v.inputs(f.documents)
	known, ok := v.memory.imprinted(v.key(), from)
	if !ok {
		if f.pack = f.readValues(); f.pack != nil {
			return
		}
	}
	if f.want.Resolved, f.pack = v.resolutions.get(f.want.Package, v.key()); f.pack != nil {
		return
	}
	f.floating = floating(v.release.Spec.Version)
	if !ok || known.digest != f.want.Resolved.Digest {
		if f.pack = f.readValues(); f.pack != nil {
			return
		}
		known = imprint{inputs: from, digest: f.want.Resolved.Digest, fingerprint: fingerprint(f.want, v.release.Spec.Tool)}
		v.memory.imprint(v.key(), known)
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
		return &problem{reason: addonsv1.ValueParsingFailedReason, message: bound(err.Error())}
	}
	return nil
}

// complete is what is wanted of an operation: it has values, and shares nothing with the object, which it outlives.
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

// inputs tells apart everything that a fingerprint is made of but the chart.
func (v *visit) inputs(documents [][]byte) [sha256.Size]byte {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %d", v.release.UID, v.release.Generation)
	for _, d := range documents {
		fmt.Fprintf(sum, " %d:", len(d))
		sum.Write(d)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// fingerprint changes with whatever would make another release: the chart, the values, the options.
func fingerprint(w tool.Want, name addonsv1.Tool) string {
	text, _ := json.Marshal([]any{name, w.Resolved.Digest, w.Values, w.Options}) // values came from YAML, and maps are sorted
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// inputProblem waits for an event if an object is missing, and retries otherwise.
func inputProblem(err error) *problem {
	p := &problem{reason: addonsv1.ValueParsingFailedReason, message: bound(err.Error()), after: firstRetry}
	if input := new(tool.InputError); errors.As(err, &input) {
		p.reason = input.Reason
		if input.Missing() {
			p.after = 0
		}
	}
	return p
}

// maxMessage bounds what is told in a condition.
const maxMessage = 1000

func bound(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return message[:maxMessage] + "…"
}
