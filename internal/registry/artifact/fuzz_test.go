package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"testing"
)

const fuzzedDigest = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

// FuzzCosign feeds signatures of strangers in both formats of cosign; none may be accepted.
func FuzzCosign(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		f.Fatal(err)
	}
	keys := map[string][]byte{"cosign.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}
	statement := base64.StdEncoding.EncodeToString([]byte(
		`{"predicateType":"` + signPredicate + `","subject":[{"digest":{"sha256":"` + fuzzedDigest[7:] + `"}}]}`))
	f.Add([]byte(`{"dsseEnvelope":{"payloadType":"`+inToto+`","payload":"`+statement+`","signatures":[{"sig":"MAA="}]}}`), []byte("MAA="))
	f.Add([]byte(`{"critical":{"image":{"docker-manifest-digest":"`+fuzzedDigest+`"}}}`), []byte{0x30, 0})
	f.Add([]byte(`{"dsseEnvelope":{"signatures":[null]}}`), []byte(nil))
	f.Fuzz(func(t *testing.T, text, signed []byte) {
		found := append(bundled(text), simple(text, signed))
		if err := checkSignatures(fuzzedDigest, found, keys); !errors.Is(err, ErrUnverified) {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzReadChartFile finds archives that crash the reader, or that it reports as anything but
// invalid or without a Chart.yaml.
func FuzzReadChartFile(f *testing.F) {
	f.Add(archived(f, "web/Chart.yaml", "name: web\nversion: 1.0.0\n"))
	f.Add(archived(f, "./web//Chart.yaml", "name: [&a *a]\n"))
	f.Add(archived(f, "Chart.yaml", ""))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		if _, err := readChartFile(archive); err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

func archived(f *testing.F, name, text string) []byte {
	f.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644})
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err := errors.Join(err, w.Close(), zipped.Close()); err != nil {
		f.Fatal(err)
	}
	return out.Bytes()
}

// FuzzProvenance finds texts that crash the parser of signed statements.
func FuzzProvenance(f *testing.F) {
	f.Add([]byte("name: web\nversion: 1.0.0\n...\nfiles:\n  web-1.0.0.tgz: " + fuzzedDigest + "\n"))
	f.Add([]byte("a: &a [*a]\n...\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseStatement(text); err != nil && !errors.Is(err, ErrUnverified) {
			t.Errorf("got %v", err)
		}
	})
}
