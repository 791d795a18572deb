package offer_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/manager/offer"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/shipped"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return data
}

func TestBundlesSurviveRestarts(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	keyFile := filepath.Join(t.TempDir(), "bundles.key")
	key, err := pki.NewKey()
	must(t, err)
	must(t, os.WriteFile(keyFile, key, 0o600))
	var earlier *transfer.Fetched
	for range 2 {
		f, err := offer.Open(t.Context(), offer.Options{Address: "127.0.0.1:0", KeyFile: keyFile, Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		keys, err := bundle.ParseKeys(map[string][]byte{"public": read(t, f.PublicKeyFile)})
		must(t, err)
		for _, place := range []string{"", "/eks-anywhere"} {
			r, err := transfer.Open(transfer.Options{Address: f.Host + place, CA: read(t, f.CAFile)})
			must(t, err)
			latest, err := transfer.Fetch(t.Context(), r, transfer.Ref{Kind: transfer.KindBundle, Repository: shipped.Repository, Tag: "v1-36-1"})
			must(t, err)
			must(t, bundle.Verify(latest.PackageBundle, keys))
			if earlier != nil {
				must(t, bundle.Verify(earlier.PackageBundle, keys))
			}
			earlier = latest
		}
		must(t, f.Close())
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("got leftovers %v, want none", left)
	}
}

func TestNoBundlesAreOfferedWithoutAKey(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := offer.Open(t.Context(), offer.Options{Address: "127.0.0.1:0", KeyFile: filepath.Join(t.TempDir(), "none"), Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Error("it opens")
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("got leftovers %v, want none", left)
	}
}
