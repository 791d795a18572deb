package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/drover-dev/drover/internal/test/gittest"
)

func TestRepositoriesBeyondTheLimitsAreRejected(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	files := map[string]string{"zeros": strings.Repeat("0", 200_000)}
	for i := range 20 {
		files[fmt.Sprint("file", i)] = fmt.Sprint(i)
	}
	repository.Commit(gittest.Branch, files)
	for name, limits := range map[string]Limits{
		"size":    {Fetch: 100_000}, // The zeros are small until they are decompressed.
		"number":  {Files: 20},
		"objects": {Files: 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, remote, Options{Limits: limits}).Tip(t.Context())
			var large *TooLargeError
			if !errors.As(err, &large) || !strings.Contains(err.Error(), remote.URL) {
				t.Errorf("error %T %v", err, err)
			}
		})
	}
	tip, err := open(t, remote, Options{Limits: Limits{Fetch: 300_000, Files: 21, File: 100_000}}).Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var large *FileTooLargeError
	if _, err := fs.ReadFile(tip.FS(), "zeros"); !errors.As(err, &large) || large.Size != 200_000 {
		t.Errorf("error %v", err)
	}
	if data, err := fs.ReadFile(tip.FS(), "file7"); string(data) != "7" || err != nil {
		t.Errorf("read %q, error %v", data, err)
	}
}

func TestPacksBeyondTheLimitsAreNotReadToTheEnd(t *testing.T) {
	noise := make([]byte, packOverhead+2<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	_, repository, remote := overSSH(t, "ed25519", "")
	repository.Commit(gittest.Branch, map[string]string{"noise": string(noise)})
	_, err := open(t, remote, Options{Limits: Limits{Fetch: 1 << 20}}).Tip(t.Context())
	var large *TooLargeError
	if !errors.As(err, &large) || large.Limit != 1<<20 {
		t.Errorf("error %T %v", err, err)
	}
}

func TestAnswersBeyondTheLimitsAreCutOff(t *testing.T) {
	server, _, remote := overHTTPS(t)
	line := func(payload string) string { return fmt.Sprintf("%04x%s", len(payload)+4, payload) }
	reference := strings.Repeat("1", 40) + " refs/heads/x"
	answer := line("# service=git-upload-pack\n") + "0000" + line(reference+"\x00agent=git/2\n") + strings.Repeat(line(reference+"\n"), 200_000)
	server.Inject(respond(http.StatusOK, answer))
	_, err := open(t, remote, Options{Limits: Limits{Fetch: 1}}).TipID(t.Context())
	var large *TooLargeError
	if !errors.As(err, &large) {
		t.Errorf("error %T %.500v", err, err)
	}
}

func TestDirectoriesThatRepeatAreCountedEachTime(t *testing.T) {
	_, repository, remote := overHTTPS(t)
	repository.Commit(gittest.Branch, map[string]string{"x": "x"})
	inner := repository.Git("rev-parse", gittest.Branch+"^{tree}")
	for range 12 { // 10^12 files in 14 objects
		var list strings.Builder
		for i := range 10 {
			fmt.Fprintf(&list, "040000 tree %s\td%d\n", inner, i)
		}
		inner = repository.GitWithInput(list.String(), "mktree")
	}
	repository.Git("update-ref", "refs/heads/"+gittest.Branch, repository.Git("commit-tree", "-m", "bomb", inner))
	_, err := open(t, remote, Options{}).Tip(t.Context())
	var large *TooLargeError
	if !errors.As(err, &large) || !strings.Contains(err.Error(), "files") {
		t.Errorf("error %T %v", err, err)
	}
}

// packOf builds a pack of objects whose content is already encoded.
func packOf(objects ...[]byte) []byte {
	var pack bytes.Buffer
	pack.WriteString("PACK")
	_ = binary.Write(&pack, binary.BigEndian, []uint32{2, uint32(len(objects))})
	for _, o := range objects {
		pack.Write(o)
	}
	sum := sha1.Sum(pack.Bytes())
	return append(pack.Bytes(), sum[:]...)
}

// packed encodes an object: a header with its type and declared size, what it refers to, and data.
func packed(kind byte, size int, reference, data []byte) []byte {
	header := []byte{kind<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		header[len(header)-1] |= 0x80
		header = append(header, byte(size&0x7f))
	}
	var out bytes.Buffer
	out.Write(append(header, reference...))
	z := zlib.NewWriter(&out)
	_, _ = z.Write(data)
	_ = z.Close()
	return out.Bytes()
}

func TestPacksAreMeasuredBeforeTheyAreStored(t *testing.T) {
	const blob, offsetDelta = 3, 6
	limits := Limits{Fetch: 1000, Files: 10}
	base := packed(blob, 100, nil, make([]byte, 100))
	delta := []byte{100, 0x80 | 0x10, 0x27, 0x80 | 0x10 | 0x20, 0, 0} // from 100 to 5008 bytes
	for name, pack := range map[string][]byte{
		"a large object":             packOf(packed(blob, 2000, nil, make([]byte, 2000))),
		"many objects":               packOf(base, base, base, base, base, base, base, base, base, base, base),
		"a difference that grows":    packOf(base, packed(offsetDelta, len(delta), []byte{byte(len(base))}, delta)),
		"more objects than allowed":  append([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"), base...),
		"a size beyond all integers": packOf([]byte{0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}),
	} {
		t.Run(name, func(t *testing.T) {
			var large *TooLargeError
			to := memory.NewStorage()
			if err := unpack(pack, to, limits); !errors.As(err, &large) || len(to.Objects) > 0 {
				t.Errorf("error %T %v, %d objects", err, err, len(to.Objects))
			}
		})
	}
	to := memory.NewStorage()
	if err := unpack(packOf(base), to, limits); err != nil || len(to.Objects) != 1 {
		t.Errorf("error %v, %d objects", err, len(to.Objects))
	}
	if err := unpack(packOf(packed(blob, 10, nil, make([]byte, 1<<20))), to, limits); err == nil {
		t.Error("no error for an object that is larger than it claims")
	}
}

func FuzzPack(f *testing.F) {
	base := packed(3, 100, nil, make([]byte, 100))
	f.Add(packOf(base))
	f.Add(packOf(base, packed(6, 6, []byte{byte(len(base))}, []byte{100, 100, 0x90, 100, 0, 0})))
	limits := Limits{Fetch: 1 << 16, Files: 100}
	f.Fuzz(func(t *testing.T, pack []byte) {
		to := memory.NewStorage()
		if unpack(pack, to, limits) != nil {
			return
		}
		total := int64(0)
		for _, o := range to.Objects {
			total += o.Size()
		}
		if total > limits.Fetch {
			t.Errorf("%d bytes were stored", total)
		}
	})
}
