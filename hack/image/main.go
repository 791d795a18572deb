// Command image packs the manager into an OCI image without a container engine. The image is
// reproducible: its digest depends only on the binary, the version and the commit.
//
//	go run ./hack/image --name myname/img-provider --output bin/image.tar
//
// If a Docker daemon is running, the image is loaded into it. Otherwise use the file with
// "docker load", "podman load", "ctr images import" or "skopeo copy oci-archive:".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/drover-dev/drover/internal/operate/bootstrap/image"
)

type options struct {
	image.Contents
	name   string
	output string
	load   bool
}

func main() {
	var o options
	flag.StringVar(&o.Binary, "binary", "bin/manager", "static executable to pack")
	flag.StringVar(&o.name, "name", "", "name of the image, with or without a tag")
	flag.StringVar(&o.Version, "version", "", "version to put on the label")
	flag.StringVar(&o.Revision, "revision", "", "commit to put on the label")
	flag.StringVar(&o.output, "output", "bin/image.tar", "file to write")
	flag.BoolVar(&o.load, "load", true, "load the image into a Docker daemon if one is running")
	flag.Parse()
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	tag, err := name.NewTag(o.name)
	if err != nil {
		return fmt.Errorf("reading the image name %q: %w", o.name, err)
	}
	img, err := o.Image()
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("computing the digest: %w", err)
	}
	if err := image.WriteArchive(o.output, tag, img); err != nil {
		return fmt.Errorf("writing %q: %w", o.output, err)
	}
	fmt.Printf("%s@%s\n", image.ShortName(tag), digest)
	if o.load {
		return load(ctx, o.output)
	}
	return nil
}

// load loads the file into the Docker daemon, or reports that none is running.
func load(ctx context.Context, file string) error {
	if !daemonRuns(ctx) {
		fmt.Fprintf(os.Stderr, "no Docker daemon is running; the image is in %s. Try: docker load --input %s\n", file, file)
		return nil
	}
	out, err := exec.CommandContext(ctx, "docker", "load", "--input", file).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("loading %q into docker: %w", file, err), errors.New(strings.TrimSpace(string(out))))
	}
	fmt.Fprint(os.Stderr, string(out))
	return nil
}

func daemonRuns(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}
