package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube/payload"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/driver/local"
	"github.com/drover-dev/drover/internal/operate/bootstrap/image"
)

const (
	// repository does not exist: the image must be preloaded.
	repository = "drover.local/manager"
	archive    = "manager-"
	// format is raised when the same program gives another image.
	format = "1"
	// keyLen is how much of a hash identifies a program.
	keyLen = 16
)

// Archive is the image of a program. Write builds it.
type Archive struct {
	// Reference names the image in a Deployment. Each program has its own.
	Reference string

	key      string
	contents image.Contents
}

// Image describes the image of a program. Building it takes seconds, which Deliver saves if it was
// delivered before.
func Image(executable string) (*Archive, error) {
	bare, err := payload.Bare(executable)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	defer bare.Close()
	v := version.Get()
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q\n", format, v.Version, v.Commit)
	if _, err := io.Copy(h, bare); err != nil {
		return nil, fmt.Errorf("reading %q: %w", executable, err)
	}
	key := hex.EncodeToString(h.Sum(nil))[:keyLen]
	return &Archive{
		Reference: repository + ":" + key, key: key,
		contents: image.Contents{Binary: executable, Version: v.Version, Revision: v.Commit, Compression: compression.ZStd},
	}, nil
}

// Write builds the image into a file.
func (a *Archive) Write(file string) error {
	tag, err := name.NewTag(a.Reference)
	if err != nil {
		return err
	}
	img, err := a.contents.Image()
	if err != nil {
		return err
	}
	return image.WriteArchive(file, tag, img)
}

// Deliver preloads the image on every local machine of a home: those that run when it returns, and
// those that are created later.
func Deliver(ctx context.Context, h metal.Home, a *Archive) error {
	return local.Deliver(ctx, h.LocalDir(), archive+a.key, a.Write)
}
