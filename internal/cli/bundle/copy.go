package bundle

import (
	"context"
	"errors"
	"fmt"
	stdio "io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

type copyOptions struct {
	registries

	output     ui.Output
	kubernetes string
	bundle     string
	images     string
	keys       []string
	skipImages bool
	dryRun     bool
	// toPlainHTTP and toInsecure apply only to the target.
	toPlainHTTP, toInsecure bool
}

func newCopy(io *ui.IO) *cobra.Command {
	o := &copyOptions{}
	cmd := &cobra.Command{
		Use:   "copy SOURCE TARGET",
		Short: "Copy a bundle with its charts and images",
		Long: `Copy a bundle with all its charts and images between registries, or to and from an
archive for air-gapped sites. SOURCE and TARGET are

  oci://HOST[:PORT][/PATH]   a registry, or a path in one
  plane                      the plane's registry
  FILE.tar                   an archive: a tar file with an OCI image layout

Repositories and digests stay the same. The command reports missing content before it
writes anything, verifies digests when it reads and when it writes, and fails if a
registry makes no progress for a minute. Existing content is not sent again, so you can
repeat an interrupted copy: an unfinished archive is called FILE.tar.partial.

The bundle is tagged last. In the copy, packages no longer name a registry, so that
clusters pull their charts from the registry of the bundle. If the signature covers the
registries, they stay unchanged.`,
		Example: `  drover bundle copy oci://registry.example.com/packages plane --kube-version 1.36
  drover bundle copy oci://registry.example.com/packages site.tar --bundle v1-36-7 --key release.key.pub
  drover bundle copy site.tar plane                # at the air-gapped site
  drover bundle copy site.tar oci://10.0.0.5:5000/mirror --ca mirror.crt --dry-run`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeFiles(2, "tar"),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0], args[1]) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *copyOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.bundle, "bundle", "", "`name` of the bundle (default for an archive: its only bundle)")
	flags.StringVar(&o.kubernetes, "kube-version", "", "copy the newest bundle for this Kubernetes minor `version`, such as 1.36")
	flags.StringVar(&o.images, "image-registry", "", "`registry` of the images, as HOST[:PORT][/PATH] (default: the registry of the bundle)")
	flags.BoolVar(&o.skipImages, "skip-images", false, "copy only the bundle and its charts")
	flags.BoolVar(&o.dryRun, "dry-run", false, "report what would be sent without writing anything")
	addKeys(cmd, &o.keys, signedByUsage)
	o.add(cmd)
	o.output.AddFlag(cmd)
}

func (o *copyOptions) run(ctx context.Context, io *ui.IO, from, to string) error {
	keys, err := bundle.ReadKeys(o.keys)
	if err != nil {
		return err
	}
	if from == to {
		return ui.Usagef("source and target are the same")
	}
	source, ref, closeSource, err := o.source(from)
	if err != nil {
		return err
	}
	defer closeSource()
	found, err := transfer.Fetch(ctx, source, ref)
	if err != nil {
		return err
	}
	if err := checkSignature(found.PackageBundle, keys); err != nil {
		return err
	}
	done, err := o.copy(ctx, io, job{source, found, to})
	if err != nil {
		return err
	}
	return o.output.Print(io.Out, done, func(w stdio.Writer) error { return copiedText(w, done, o.repository) })
}

// job is a bundle and where it is copied from and to.
type job struct {
	source transfer.Source
	bundle *transfer.Fetched
	to     string
}

func (o *copyOptions) copy(ctx context.Context, io *ui.IO, j job) (*transfer.Copied, error) {
	target, finish, err := o.target(j.to)
	if err != nil {
		return nil, err
	}
	c := &transfer.Copier{
		From: j.source, To: target, Repository: o.repository, ImageRegistry: strings.TrimPrefix(o.images, scheme), SkipImages: o.skipImages,
		DryRun: o.dryRun, Report: printProgress(io),
	}
	if o.dryRun {
		c.Report = nil
	}
	done, err := c.Copy(ctx, j.bundle)
	return done, finish(err)
}

// source opens the source and selects the bundle to copy.
func (o *copyOptions) source(from string) (transfer.Source, transfer.Ref, func(), error) {
	ref := transfer.Ref{Kind: transfer.KindBundle, Repository: o.repository}
	if isRegistry(from) {
		var args []string
		if o.bundle != "" {
			args = []string{o.bundle}
		}
		tag, err := wanted(args, o.kubernetes)
		if err != nil {
			return nil, ref, nil, err
		}
		ref.Tag = tag
		r, err := o.open(from)
		return r, ref, func() {}, err
	}
	a, err := transfer.OpenArchive(from)
	if err != nil {
		return nil, ref, nil, err
	}
	ref, err = o.choose(a)
	if err != nil {
		return nil, ref, nil, errors.Join(err, a.Close())
	}
	return a, ref, func() { _ = a.Close() }, nil
}

// choose selects a bundle of an archive.
func (o *copyOptions) choose(a *transfer.Archive) (transfer.Ref, error) {
	var names []string
	var chosen []transfer.Ref
	for _, ref := range a.Bundles() {
		names = append(names, ref.Tag)
		if o.bundle == "" || o.bundle == ref.Tag {
			chosen = append(chosen, ref)
		}
	}
	switch {
	case len(names) == 0:
		return transfer.Ref{}, fmt.Errorf("no bundle found in archive %q", a)
	case len(chosen) != 1:
		return transfer.Ref{}, ui.Usagef("pass --bundle with one of the bundles in archive %q: %s", a, strings.Join(names, ", "))
	}
	return chosen[0], nil
}

// target opens the target. The caller passes the error of the copy to the returned function, which
// finishes the target.
func (o *copyOptions) target(to string) (transfer.Target, func(error) error, error) {
	if isRegistry(to) {
		flags := o.registries
		flags.plainHTTP = flags.plainHTTP || o.toPlainHTTP
		flags.insecure = flags.insecure || o.toInsecure
		r, err := flags.open(to)
		return r, func(err error) error { return err }, err
	}
	if o.dryRun {
		w, err := transfer.PlanArchive(to)
		return w, func(err error) error { return errors.Join(err, w.Close()) }, err
	}
	w, err := transfer.CreateArchive(to)
	return w, func(err error) error {
		if err == nil {
			err = w.Finish()
		}
		return errors.Join(err, w.Close())
	}, err
}

func isRegistry(place string) bool { return place == ownPlane || strings.HasPrefix(place, scheme) }
