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
	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/kube/payload"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/driver/local"
	"github.com/drover-dev/drover/internal/operate/bootstrap/image"
)

const (
	// registry does not exist: images must be preloaded.
	registry = "drover.local/"
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
	v := version.Get()
	return describe(image.Contents{Program: image.Manager(), Binary: executable, Version: v.Version, Revision: v.Commit})
}

// FluxImage describes the image of a Flux controller, given its program.
func FluxImage(c flux.Controller, executable string) (*Archive, error) {
	return describe(image.Contents{Program: image.Flux(c), Binary: executable, Version: c.Version})
}

func describe(c image.Contents) (*Archive, error) {
	bare, err := payload.Bare(c.Binary)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	defer bare.Close()
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q\n", format, c.Version, c.Revision)
	if _, err := io.Copy(h, bare); err != nil {
		return nil, fmt.Errorf("reading %q: %w", c.Binary, err)
	}
	key := hex.EncodeToString(h.Sum(nil))[:keyLen]
	c.Compression = compression.ZStd
	return &Archive{Reference: registry + c.Name + ":" + key, key: key, contents: c}, nil
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
	return local.Deliver(ctx, h.LocalDir(), a.contents.Name+"-"+a.key, a.Write)
}
