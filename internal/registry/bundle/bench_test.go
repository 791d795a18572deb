package bundle_test

import (
	"fmt"
	"os"
	"testing"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// A bundle of realistic size.
func BenchmarkVerify(b *testing.B) {
	key := newPair(b)
	text, err := os.ReadFile(key.private)
	must(b, err)
	private, err := bundle.ParsePrivateKey(text)
	must(b, err)
	large := bundleOf("v1-36-1")
	large.Annotations = map[string]string{packagesv1.ExcludesAnnotation: bundle.EncodeExcludes(bundle.DefaultExcludes)}
	for i := range 30 {
		v := version("1.0.0", image("images/a", digest("a")), image("images/b", digest("b")))
		v.Schema = bundle.EncodeSchema([]byte(helloSchema))
		large.Spec.Packages = append(large.Spec.Packages, offer(fmt.Sprint("package-", i), v, v, v))
	}
	must(b, bundle.Sign(large, private))
	trusted := keys(b, key)
	b.ReportAllocs()
	for b.Loop() {
		must(b, bundle.Verify(large, trusted))
	}
}
