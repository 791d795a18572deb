package release

import (
	"testing"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

func TestFingerprintChangesWithInputs(t *testing.T) {
	v := &visit{Controller: &Controller{}, release: &addonsv1.HelmReleaseProxy{}}
	v.release.UID, v.release.Generation = "u", 1
	documents := [][]byte{[]byte("a: 1"), []byte("b: 2")}
	v.memory.setFingerprint(v.key(), fingerprinted{inputs: v.inputs(documents), fingerprint: "f"})
	if got, ok := v.memory.fingerprintFor(v.key(), v.inputs(documents)); !ok || got.fingerprint != "f" {
		t.Fatalf("got %+v, %t", got, ok)
	}
	for name, inputs := range map[string]func() [32]byte{
		"another document": func() [32]byte { return v.inputs([][]byte{[]byte("a: 1"), []byte("b: 3")}) },
		"cut elsewhere":    func() [32]byte { return v.inputs([][]byte{[]byte("a: 1b"), []byte(": 2")}) },
		"one less":         func() [32]byte { return v.inputs(documents[:1]) },
		"another generation": func() [32]byte {
			v.release.Generation = 2
			return v.inputs(documents)
		},
		"another object of the name": func() [32]byte {
			v.release.Generation, v.release.UID = 1, "other"
			return v.inputs(documents)
		},
	} {
		if _, ok := v.memory.fingerprintFor(v.key(), inputs()); ok {
			t.Errorf("%s: the fingerprint is the old one", name)
		}
		v.release.UID, v.release.Generation = "u", 1
	}
	v.memory.forget(v.key())
	if _, ok := v.memory.fingerprintFor(v.key(), v.inputs(documents)); ok {
		t.Error("got a cached value, want none")
	}
}
