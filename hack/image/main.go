// Command image packs the manager into an OCI image without a container engine,
// and always into the same one: the digest depends on the binary, the version
// and the commit, not on when or where it is made.
//
//	go run ./hack/image --name myname/img-provider --output bin/image.tar
//
// A docker daemon that answers gets the image loaded. Without one the file is
// all there is, and "docker load", "podman load", "ctr images import" or "skopeo
// copy oci-archive:" take it from there.
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
	flag.BoolVar(&o.load, "load", true, "load the image into a docker daemon if one answers")
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

// load hands the file to the docker daemon. That there is none is no failure,
// but it is said.
func load(ctx context.Context, file string) error {
	if !daemonAnswers(ctx) {
		fmt.Fprintf(os.Stderr, "no docker daemon answers, so the image is only in %s; load it elsewhere with: docker load --input %s\n", file, file)
		return nil
	}
	out, err := exec.CommandContext(ctx, "docker", "load", "--input", file).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("loading %q into docker: %w", file, err), errors.New(strings.TrimSpace(string(out))))
	}
	fmt.Fprint(os.Stderr, string(out))
	return nil
}

func daemonAnswers(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}
