package spec_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

func seeds(f *testing.F) {
	for _, name := range []string{"docker", "packet"} {
		f.Add(base(f, name))
	}
	for _, text := range []string{
		"", "---", "{}", "{}{}", "- a", "a: &a [*a]", head, head + "spec: {kubernetesVersion: 1.30}", "\xff", "\x00", head + "metadata: {name: b}",
		head + "spec: {controlPlaneConfiguration: {kubeletConfiguration: {a: 1e400, b: .inf}}}", head + "<<: {a: b}\n",
		`{"apiVersion":"v1","kind":"List","items":[{}]}`, head + "spec: {machineHealthCheck: {maxUnhealthy: 40%, nodeStartupTimeout: 1h}}",
		head + "spec: {controlPlaneConfiguration: {taints: [null], kubeletConfiguration: {}}, identityProviderRefs: [null]}",
	} {
		f.Add([]byte(text))
	}
}

// Every file is accepted or rejected, and every violation can be printed.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := spec.Read(data)
		if err != nil {
			var problems spec.Violations
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("an error without violations: %v", err)
			}
			complete(t, problems)
			return
		}
		same(t, c)
		spec.Default(c)
		same(t, c)
		_, problems := spec.Check(data)
		complete(t, problems)
		_ = spec.Notes(c.Cluster)
		_ = spec.ValidateCreate(c.Cluster)
		if problems := spec.ValidateUpdate(c.Cluster, c.Cluster); len(problems) > 0 {
			t.Errorf("a cluster can't stay as it is: %v", problems)
		}
	})
}

// Defaulting is idempotent, and the result can be encoded and decoded.
func FuzzDefault(f *testing.F) {
	for _, text := range []string{"", "a", "\x01\x02\x03\x04", "1.36 # yes: {no}\n---\n- 'x' \"y\"", "\xff\x00\u2028\ufeff\u0085\t", "0000000000", "zzzzzzzzzzzzzzzzzzzz"} {
		f.Add([]byte(text))
		f.Add(bytes.Repeat([]byte(text), 50))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &spec.Config{Cluster: &anywherev1.Cluster{}}
		from := &source{data: data}
		from.fill(reflect.ValueOf(&c.Cluster.Spec).Elem())
		c.Cluster.Name = "a" + from.text()
		spec.Default(c)
		once := c.Cluster.DeepCopy()
		spec.Default(c)
		if diff := cmp.Diff(once, c.Cluster); diff != "" {
			t.Errorf("defaults changed what had them:\n%s", diff)
		}
		same(t, c)
		complete(t, spec.Validate(c))
		if problems := spec.ValidateUpdate(c.Cluster, c.Cluster); len(problems) > 0 {
			t.Errorf("a cluster can't stay as it is: %v", problems)
		}
	})
}

// same encodes a config and decodes it.
func same(t *testing.T, c *spec.Config) {
	t.Helper()
	written, err := spec.Marshal(c)
	if err != nil {
		t.Fatalf("it was read, and can't be written: %v", err)
	}
	again, err := spec.Read(written)
	if err != nil {
		t.Fatalf("it was written, and can't be read: %v\n%s", err, written)
	}
	if diff := cmp.Diff(c, again, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(spec.Config{}, "Ignored")); diff != "" {
		t.Fatalf("reading what was written (-want +got):\n%s\n%s", diff, written)
	}
}
