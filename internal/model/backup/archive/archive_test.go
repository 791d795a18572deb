package archive

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/base/pki"
)

// text is a snapshot.
type text string

func (s text) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, string(s))
	return int64(n), err
}

// world is a cluster with a CA, and the key of its administrator.
type world struct {
	seal Seal
	key  Key
}

func newWorld(t *testing.T) world {
	t.Helper()
	authority, err := pki.NewAuthority("cluster", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := pki.ParseKey(authority.Key)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return world{
		Seal{Key: signer, Recipients: []age.Recipient{identity.Recipient()}},
		Key{Identities: []age.Identity{identity}, Signers: authority.Certs},
	}
}

var content = text(strings.Repeat("all objects, Secrets included. ", 10_000))

func manifest() Manifest {
	return Manifest{Namespace: "default", Cluster: "dev", Created: time.Unix(1_700_000_000, 0).UTC(), Size: int64(len(content)), Etcd: "3.6.1", Revision: 42, Drover: "v1"}
}

func (w world) write(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, manifest(), content, w.seal); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	w := newWorld(t)
	written := w.write(t)
	if bytes.Contains(written, []byte("Secrets")) {
		t.Error("the archive is not encrypted")
	}
	var got bytes.Buffer
	m, err := Read(bytes.NewReader(written), w.key, &got)
	if err != nil || got.String() != string(content) {
		t.Fatalf("%d bytes: %v", got.Len(), err)
	}
	want := manifest()
	want.Format = format
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
}

func TestReadRejectsWhatItShouldNotRestore(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	written := w.write(t)
	flipped := bytes.Clone(written)
	flipped[len(flipped)/2] ^= 1
	for name, tt := range map[string]struct {
		archive []byte
		key     Key
		want    error
	}{
		"another identity":        {written, Key{other.key.Identities, w.key.Signers}, ErrLocked},
		"another cluster's CA":    {written, Key{w.key.Identities, other.key.Signers}, ErrForeign},
		"no CA":                   {written, Key{w.key.Identities, nil}, ErrForeign},
		"one bit flipped":         {flipped, w.key, ErrDamaged},
		"half of it":              {written[:len(written)/2], w.key, ErrDamaged},
		"all but the last byte":   {written[:len(written)-1], w.key, ErrDamaged},
		"only the header":         {written[:300], w.key, ErrDamaged},
		"nothing":                 {nil, w.key, ErrDamaged},
		"something else entirely": {[]byte("hello"), w.key, ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(bytes.NewReader(tt.archive), tt.key, io.Discard); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestForgedArchivesAreRejected: anyone can encrypt for an age recipient.
func TestForgedArchivesAreRejected(t *testing.T) {
	w, forger := newWorld(t), newWorld(t)
	forger.seal.Recipients = w.seal.Recipients
	if _, err := Read(bytes.NewReader(forger.write(t)), w.key, io.Discard); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "default/dev") {
		t.Errorf("got %v, want %v", err, ErrForeign)
	}
}

func TestSignatureCoversManifestAndContent(t *testing.T) {
	w := newWorld(t)
	sum := digest([]byte("snapshot"))
	signature, err := w.seal.Key.Sign(rand.Reader, digest(snapshot.signedText([]byte("manifest"), sum)), crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		manifest, content string
		want              bool
	}{
		"both":            {"manifest", "snapshot", true},
		"other manifest":  {"another", "snapshot", false},
		"other content":   {"manifest", "another", false},
		"swapped content": {"snapshot", "manifest", false},
	} {
		got := signedBy(w.key.Signers, snapshot.signedText([]byte(tt.manifest), digest([]byte(tt.content))), signature)
		if got != tt.want {
			t.Errorf("%s: valid is %t", name, got)
		}
	}
	if signedBy([]*x509.Certificate{}, snapshot.signedText([]byte("manifest"), sum), signature) {
		t.Error("nobody's signature is valid")
	}
}

// short is a snapshot whose stream ends early.
type short struct{}

var errEnded = errors.New("the stream ended")

func (short) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, "beginning")
	return int64(n), errors.Join(err, errEnded)
}

// full is a disk that is full.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFailsWithItsStreams(t *testing.T) {
	w := newWorld(t)
	var out bytes.Buffer
	if err := Write(&out, manifest(), short{}, w.seal); !errors.Is(err, errEnded) {
		t.Errorf("a stream that ends: %v", err)
	}
	if _, err := Read(bytes.NewReader(out.Bytes()), w.key, io.Discard); err == nil {
		t.Error("what was written until then is accepted")
	}
	if err := Write(full{}, manifest(), content, w.seal); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	m := manifest()
	m.Size++
	if err := Write(io.Discard, m, content, w.seal); err == nil {
		t.Error("a snapshot that is shorter than announced was written")
	}
	if _, err := Read(bytes.NewReader(w.write(t)), w.key, full{}); !errors.Is(err, errFull) || errors.Is(err, ErrDamaged) {
		t.Errorf("reading to a full disk: %v", err)
	}
}

func TestNewerFormatsAreNamed(t *testing.T) {
	w := newWorld(t)
	m := manifest()
	m.Drover = "v9"
	var out bytes.Buffer
	m.Format = format + 1
	if err := snapshot.write(&out, m, content, w.seal); err != nil {
		t.Fatal(err)
	}
	_, err := Read(&out, w.key, io.Discard)
	if want := fmt.Sprintf("it has format %d of Drover v9", format+1); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestKindsDontStandForEachOther: the signature of a snapshot is not that of a backup.
func TestKindsDontStandForEachOther(t *testing.T) {
	w := newWorld(t)
	var backup bytes.Buffer
	if err := Objects().Write(&backup, manifest(), content, w.seal); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(bytes.NewReader(backup.Bytes()), w.key, io.Discard); err == nil {
		t.Error("a backup is accepted as a snapshot")
	}
	if _, err := Objects().Read(bytes.NewReader(w.write(t)), w.key, io.Discard); err == nil {
		t.Error("a snapshot is accepted as a backup")
	}
	if _, err := Objects().Read(bytes.NewReader(backup.Bytes()), w.key, io.Discard); err != nil {
		t.Error(err)
	}
}
