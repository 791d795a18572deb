package manifests

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/test/yamltest"
)

func TestHostileManifestsAreNotParsed(t *testing.T) {
	yamltest.Attack(t, func() error { _, err := parse([]byte(config + yamltest.Text())); return err })
}

func zipText(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipper := gzip.NewWriter(&out)
	_, err := zipper.Write([]byte(text))
	must(t, errors.Join(err, zipper.Close()))
	return out.Bytes()
}

func TestHostileRecordsAreBroken(t *testing.T) {
	text := `{"objects":[{"a":[` + strings.Repeat("[],", safeyaml.MaxValues) + `0]}]}`
	secret := &corev1.Secret{Data: map[string][]byte{recordKey: zipText(t, text)}}
	yamltest.Attack(t, func() error {
		if decode(secret).broken {
			return errors.New("broken")
		}
		return nil
	})
}

// FuzzDecodeRecord checks that every record is read or broken.
func FuzzDecodeRecord(f *testing.F) {
	for _, seed := range []string{`{}`, `{"revision":1,"status":"deployed","objects":[{"kind":"ConfigMap"}],"before":[{"kind":"a"}],"last":{"objects":[null]}}`, `[]`, `{"objects":{}}`} {
		f.Add(zipText(f, seed), "1")
	}
	f.Add([]byte("x"), "x")
	f.Fuzz(func(t *testing.T, data []byte, revision string) {
		secret := &corev1.Secret{Data: map[string][]byte{recordKey: data}}
		secret.Labels = map[string]string{revisionLabel: revision}
		rec := decode(secret)
		next := &record{}
		next.succeed(rec)
		for _, r := range []*record{rec, next} {
			r.leftovers()
			for _, o := range r.all() {
				o.GetName()
			}
		}
	})
}

// FuzzUnpack checks that unpacked files are below the directory that they are read from.
func FuzzUnpack(f *testing.F) {
	f.Add("a.yaml", config, "kustomization.yaml", "resources: [a.yaml]")
	f.Add("dir/../a.yaml", config, "dir/./b.yaml", config)
	f.Add("../a.yaml", "", "/b.yaml", "")
	f.Fuzz(func(t *testing.T, first, firstText, second, secondText string) {
		files, err := unpack(packFiles(t, [2]string{first, firstText}, [2]string{second, secondText}))
		if err != nil {
			return
		}
		for name := range files {
			if !fs.ValidPath(name) {
				t.Errorf("unpacked %q", name)
			}
		}
	})
}

// packFiles returns what fits into an archive.
func packFiles(t testing.TB, files ...[2]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	out := tar.NewWriter(&packed)
	for _, f := range files {
		if out.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}) == nil {
			_, _ = out.Write([]byte(f[1])) // A directory has no content.
		}
	}
	_ = out.Close()
	return zipText(t, packed.String())
}
