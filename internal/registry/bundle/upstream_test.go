package bundle_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"gopkg.in/yaml.v2"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// reference computes the signed form independently of package bundle: with one jq query for
// everything that is removed, and with the YAML library that upstream's tools are built with.
func reference(b *packagesv1.PackageBundle) ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	query, err := gojq.Parse(`del(.status, .metadata.creationTimestamp, .metadata.generation, .metadata.managedFields, .metadata.uid,
		.metadata.resourceVersion, .spec.minControllerVersion, .spec.packages[].source.registry, .spec.packages[].source.repository)
		| (.metadata.annotations | objects) |= with_entries(select(.key | test("^eksa\\.aws\\.com/(?:includes|excludes)$")))`)
	if err != nil {
		return nil, err
	}
	filtered, _ := query.Run(content).Next()
	if err, failed := filtered.(error); failed {
		return nil, err
	}
	if text, err = json.Marshal(filtered); err != nil {
		return nil, err
	}
	// JSON is read as YAML, which takes some characters for line breaks and rejects others.
	var again any
	if err := yaml.Unmarshal(text, &again); err != nil {
		return nil, err
	}
	return yaml.Marshal(again)
}

// pieces are what texts are made of: words, spaces, and whatever YAML treats specially.
var pieces = []string{
	"word", "a-rather-long-word-without-any-spaces-in-it", " ", " ", " ", "  ", "\t", "\n", "\r", "\n\n", ": ", " #", "#", "-", "- ", "? ", "\"", "'", "\\",
	"&", "*", "!", "%", "@", "`", "{", "}", "[", "]", ",", "|", ">", "<", "=", "~", "null", "yes", "No", "true", "0", "0o7", "0x1f", "1e3", "-1", ".5", ".inf", "1_000",
	"2026-01-02", "12:30:45", "é", "ß", "世界", "🐑", "\u0085", "\u2028", "\u2029", "\u00a0", "\ufeff", "\u200b", "\x00", "\x01", "\x07", "\x1b", "\U0010ffff",
}

// unreadable are characters that upstream rejects.
var unreadable = []string{"\x7f", "\u0080", "\u009f", "\ufffe"}

func randomText(r *rand.Rand) string {
	var out strings.Builder
	for range 1 + r.IntN(1+r.IntN(40)) {
		piece := pieces[r.IntN(len(pieces))]
		if r.IntN(3) > 0 { // Mostly words, which get folded.
			piece = pieces[r.IntN(6)]
		}
		if r.IntN(1000) == 0 {
			piece = unreadable[r.IntN(len(unreadable))]
		}
		out.WriteString(piece)
	}
	return out.String()
}

func randomBundle(t *testing.T, r *rand.Rand) *packagesv1.PackageBundle {
	t.Helper()
	b := parse(t, published)
	b.Labels = map[string]string{randomText(r): randomText(r), "a": randomText(r)}
	for i := range b.Spec.Packages {
		p := &b.Spec.Packages[i]
		p.Name = randomText(r)
		for j := range p.Source.Versions {
			v := &p.Source.Versions[j]
			v.Name, v.Digest, v.Schema = randomText(r), randomText(r), randomText(r)
			v.Dependencies = []string{randomText(r), randomText(r)}
			v.Images = []packagesv1.VersionImages{{Repository: randomText(r), Digest: randomText(r)}}
		}
	}
	return b
}

func TestCanonicalFormOfRandomBundlesIsUpstreams(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	rejected := 0
	for i := range 3000 {
		b := randomBundle(t, r)
		got, err := bundle.Canonical(b)
		want, wantErr := reference(b)
		if wantErr != nil {
			rejected++
		}
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("bundle %d: %v, want %v\n%q\nwant\n%q", i, err, wantErr, got, want)
		}
	}
	if rejected == 0 || rejected > 2000 {
		t.Errorf("%d of 3000 bundles are rejected", rejected)
	}
}
