package bundle

import (
	"context"
	"errors"
	"fmt"
	stdio "io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

type copyOptions struct {
	places

	output     ui.Output
	kubernetes string
	bundle     string
	images     string
	keys       []string
	skipImages bool
	dryRun     bool
	// toPlainHTTP and toInsecure are for the target only.
	toPlainHTTP, toInsecure bool
}

func newCopy(io *ui.IO) *cobra.Command {
	o := &copyOptions{}
	cmd := &cobra.Command{
		Use:   "copy SOURCE TARGET",
		Short: "Copy a bundle with its charts and images",
		Long: `Copy a bundle with all its charts and images between registries, or to and from an
archive, which can be carried to where no network goes. SOURCE and TARGET are

  oci://HOST[:PORT][/PATH]   a registry, or a path in one
  plane                      the plane's own registry
  FILE.tar                   an archive: an OCI image layout in a tar

Everything keeps its repository below that, and its digest. What is missing at the
source is said before anything is written. Content is compared with its digest when it
is read and when it is written; a registry that sends something else, half of it, or
nothing more for a minute is given up. What the target has is not sent again, so that a
copy that was cut short goes on where it was if you run it again: an archive is called
FILE.tar.partial until it is whole.

The tag of the bundle is set last. In the copy, packages that name a registry no longer
do, so that their charts are looked for beside the bundle; signatures allow that unless
they were made to forbid it, and then the name stays.`,
		Example: `  drover bundle copy oci://registry.example.com/packages plane --kube-version 1.36
  drover bundle copy oci://registry.example.com/packages site.tar --bundle v1-36-7 --key release.key.pub
  drover bundle copy site.tar plane                # on the other side
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
	flags.StringVar(&o.bundle, "bundle", "", "`name` of the bundle; an archive with one bundle needs none")
	flags.StringVar(&o.kubernetes, "kube-version", "", "copy the newest bundle for this minor `version` of Kubernetes, such as 1.36")
	flags.StringVar(&o.images, "image-registry", "", "`registry` that has the images, as HOST[:PORT][/PATH] (default: that of the bundle)")
	flags.BoolVar(&o.skipImages, "skip-images", false, "copy the bundle and its charts only")
	flags.BoolVar(&o.dryRun, "dry-run", false, "find out what would be sent, and write nothing")
	addKeys(cmd, &o.keys, "`file` with a public key that must have signed the bundle, or another that is named; may be repeated")
	o.add(cmd)
	o.output.AddFlag(cmd)
}

func (o *copyOptions) run(ctx context.Context, io *ui.IO, from, to string) error {
	keys, err := readKeys(o.keys)
	if err != nil {
		return err
	}
	if from == to {
		return ui.Usagef("the source and the target are the same")
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

// job is what is copied.
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
		DryRun: o.dryRun, Tell: tell(io),
	}
	if o.dryRun {
		c.Tell = nil
	}
	done, err := c.Copy(ctx, j.bundle)
	return done, finish(err)
}

// source opens where the bundle is, and says which it is.
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

// choose is the bundle of an archive that is meant.
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
		return transfer.Ref{}, fmt.Errorf("there is no bundle in archive %q", a)
	case len(chosen) != 1:
		return transfer.Ref{}, ui.Usagef("name one of the bundles in archive %q with --bundle: %s", a, strings.Join(names, ", "))
	}
	return chosen[0], nil
}

// target opens where the bundle goes. What it returns is called with how that went.
func (o *copyOptions) target(to string) (transfer.Target, func(error) error, error) {
	if isRegistry(to) {
		there := o.places
		there.plainHTTP = there.plainHTTP || o.toPlainHTTP
		there.insecure = there.insecure || o.toInsecure
		r, err := there.open(to)
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
