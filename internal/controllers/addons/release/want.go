package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/template"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// gatherWant finds out what the release should be. Values that are known already are not read again: most of the time nothing has changed.
func (v *visit) gatherWant(ctx context.Context, f *facts) {
	if f.want, f.pack = v.outline(ctx); f.pack != nil {
		return
	}
	if f.documents, f.pack = v.documents(ctx); f.pack != nil {
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

// readValues makes values of the documents, once.
func (f *facts) readValues() *problem {
	if f.want.Values != nil {
		return nil
	}
	var p *problem
	f.want.Values, p = parse(f.documents)
	return p
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

// reference says where the package is, and how to open the place.
func (v *visit) reference(ctx context.Context) (artifact.Ref, *problem) {
	spec := &v.release.Spec
	ref := artifact.Ref{URL: spec.RepoURL, Name: spec.ChartName, Version: spec.Version}
	if c := spec.Credentials; c != nil {
		if err := v.credentials(ctx, c, &ref.Access); err != nil {
			return ref, asProblem(addonsv1.GetCredentialsFailedReason, err)
		}
	}
	if t := spec.TLSConfig; t != nil {
		ref.Access.SkipTLSVerify = t.InsecureSkipTLSVerify
		if t.CASecretRef != nil && t.CASecretRef.Name != "" {
			ca, err := v.Values.value(ctx, "Secret", v.named(*t.CASecretRef), addonsv1.CAKey)
			if err != nil {
				return ref, asProblem(addonsv1.GetCACertificateFailedReason, err)
			}
			ref.Access.CA = ca
		}
	}
	if spec.Verify != nil {
		keys, err := v.Values.get(ctx, "Secret", client.ObjectKey{Namespace: v.release.Namespace, Name: spec.Verify.SecretRef.Name})
		if err != nil {
			return ref, asProblem(addonsv1.GetCredentialsFailedReason, fmt.Errorf("reading the keys to verify with: %w", err))
		}
		ref.Verify = &artifact.Verification{Provider: spec.Verify.Provider, Keys: keys.data}
	}
	return ref, nil
}

func (v *visit) credentials(ctx context.Context, c *addonsv1.Credentials, access *artifact.Access) error {
	key := v.named(c.Secret)
	found, err := v.Values.get(ctx, "Secret", key)
	if apierrors.IsNotFound(err) {
		return &missing{fmt.Sprintf("Secret %q does not exist", key)}
	}
	if err != nil {
		return fmt.Errorf("reading Secret %q: %w", key, err)
	}
	if found.kind == corev1.SecretTypeBasicAuth {
		access.Username = string(found.data[corev1.BasicAuthUsernameKey])
		access.Password = string(found.data[corev1.BasicAuthPasswordKey])
		return nil
	}
	name := c.Key
	if name == "" {
		name = addonsv1.DefaultCredentialsKey
	}
	access.DockerConfig, err = v.Values.value(ctx, "Secret", key, name)
	return err
}

// documents are the values of valuesFrom in their order, with the release's own on top.
func (v *visit) documents(ctx context.Context) ([][]byte, *problem) {
	var documents [][]byte
	for _, from := range v.release.Spec.ValuesFrom {
		key := from.Key
		if key == "" {
			key = "values.yaml"
		}
		text, err := v.Values.value(ctx, from.Kind, client.ObjectKey{Namespace: v.release.Namespace, Name: from.Name}, key)
		if notThere := new(missing); errors.As(err, &notThere) && from.Optional {
			continue
		}
		if err != nil {
			return nil, asProblem(addonsv1.ValueParsingFailedReason, err)
		}
		documents = append(documents, text)
	}
	return append(documents, []byte(v.release.Spec.Values)), nil
}

func parse(documents [][]byte) (map[string]any, *problem) {
	merged, err := template.Merge(documents...)
	if err != nil {
		return nil, &problem{reason: addonsv1.ValueParsingFailedReason, message: bound(err.Error())}
	}
	return merged, nil
}

func (v *visit) named(ref corev1.SecretReference) client.ObjectKey {
	if ref.Namespace == "" {
		ref.Namespace = v.release.Namespace
	}
	return client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
}

// asProblem is why something can't be read. What is missing is told when it comes; the rest is tried again.
func asProblem(reason string, err error) *problem {
	p := &problem{reason: reason, message: bound(err.Error()), after: firstRetry}
	if notThere := new(missing); errors.As(err, &notThere) || apierrors.IsNotFound(err) {
		p.after = 0
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
