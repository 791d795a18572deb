// Command image packs the manager, or a Flux controller, into an OCI image without a container
// engine. The image is reproducible: its digest depends only on the binary, the version and the
// commit.
//
//	go run ./hack/image --name myname/img-provider --output bin/image.tar
//	go run ./hack/image --controller source-controller --output bin/source-controller.tar
//
// If a Docker daemon is running, the image is loaded into it. Otherwise use the file with
// "docker load", "podman load", "ctr images import" or "skopeo copy oci-archive:".
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/operate/bootstrap/image"
)

type options struct {
	image.Contents
	name       string
	controller string
	output     string
	load       bool
}

func main() {
	o := options{Contents: image.Contents{Program: image.Manager()}}
	flag.StringVar(&o.Binary, "binary", "bin/manager", "static executable to pack")
	flag.StringVar(&o.controller, "controller", "", "`name` of the Flux controller to pack instead of --binary, from the cache")
	flag.StringVar(&o.name, "name", "", "name of the image, with or without a tag; by default that of the Flux controller")
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
	if o.controller != "" {
		if err := o.useController(); err != nil {
			return err
		}
	}
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

// useController packs a Flux controller in its own version.
func (o *options) useController() error {
	all := flux.Controllers()
	i := slices.IndexFunc(all, func(c flux.Controller) bool { return c.Name == o.controller })
	if i < 0 {
		return fmt.Errorf("unknown controller %q: choose one of %v", o.controller, all)
	}
	programs, err := flux.Find()
	if err != nil {
		return err
	}
	c := all[i]
	o.Contents = image.Contents{Program: image.Flux(c), Binary: programs[c.Name], Version: c.Version}
	o.name = cmp.Or(o.name, "drover-dev/"+c.Name+":"+c.Version)
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
