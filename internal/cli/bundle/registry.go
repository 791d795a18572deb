package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	stdio "io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

const (
	// ownPlane stands for the registry of the plane.
	ownPlane = "plane"
	// defaultRepository is where bundles are in a registry, unless somebody says otherwise.
	defaultRepository = "eks-anywhere-packages-bundles"
	scheme            = "oci://"
)

// places is how commands find registries.
type places struct {
	home       string
	registry   string
	repository string
	caFiles    []string
	plainHTTP  bool
	insecure   bool
}

// add puts the flags on a command.
func (p *places) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&p.home, "home", "", "`directory` that holds all state of the plane (default $DROVER_HOME, or ~/.drover)")
	flags.StringVar(&p.repository, "repository", defaultRepository, "`repository` of bundles in a registry")
	flags.StringArrayVar(&p.caFiles, "ca", nil, "`file` with certificates to trust besides the system's, for registries other than the plane's; may be repeated")
	flags.BoolVar(&p.plainHTTP, "plain-http", false, "also speak to registries without TLS")
	flags.BoolVar(&p.insecure, "insecure-skip-tls-verify", false, "trust every certificate of a registry")
	_ = cmd.MarkFlagDirname("home")
	_ = cmd.MarkFlagFilename("ca", "crt", "pem")
}

// addRegistry adds the flag for commands that need one registry.
func (p *places) addRegistry(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.registry, "registry", ownPlane, "`registry`, as HOST[:PORT][/PATH], or \"plane\" for the plane's own")
	_ = cmd.RegisterFlagCompletionFunc("registry", cobra.FixedCompletions([]string{ownPlane}, cobra.ShellCompDirectiveNoFileComp))
}

// open opens a registry by its address.
func (p *places) open(address string) (*transfer.Registry, error) {
	o := transfer.Options{Address: address, PlainHTTP: p.plainHTTP, SkipTLSVerify: p.insecure}
	for _, file := range p.caFiles {
		ca, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the CA: %w", err)
		}
		o.CA = append(append(o.CA, ca...), '\n')
	}
	if address == ownPlane {
		return p.openPlane(o)
	}
	return transfer.Open(o)
}

// openPlane opens the plane's own registry, as its owner. Other options are for registries that its bundles name.
func (p *places) openPlane(o transfer.Options) (*transfer.Registry, error) {
	dir, err := filepath.Abs(cmp.Or(p.home, plane.DefaultHome()))
	if err != nil {
		return nil, err
	}
	r, err := plane.ReadRegistry(plane.Home{Dir: dir})
	switch {
	case errors.Is(err, plane.ErrNoPlane):
		return nil, fmt.Errorf("%w: run `drover up` to create one, or name a registry", err)
	case err != nil:
		return nil, err
	case r.State == plane.Stopped:
		return nil, plane.ErrNotRunning
	}
	address, err := url.Parse(r.URL)
	if err != nil {
		return nil, fmt.Errorf("the registry's address %q is not a URL", r.URL)
	}
	ca, caErr := os.ReadFile(r.CAFile)
	password, passwordErr := os.ReadFile(r.PasswordFile)
	if err := errors.Join(caErr, passwordErr); err != nil {
		return nil, fmt.Errorf("opening the registry of the plane: %w", err)
	}
	o.Address, o.CA = address.Host, append(o.CA, ca...)
	o.Username, o.Password = registry.User, string(bytes.TrimSpace(password))
	return transfer.Open(o)
}

// load gets a bundle by one of the names that it can have.
func (p *places) load(ctx context.Context, io *ui.IO, name string) (*packagesv1.PackageBundle, error) {
	switch {
	case strings.HasPrefix(name, scheme):
		address, repository, tag, err := splitReference(name)
		if err != nil {
			return nil, err
		}
		return p.fetch(ctx, address, transfer.Ref{Repository: repository, Tag: tag})
	case isTag(name):
		return p.fetch(ctx, p.registry, transfer.Ref{Repository: p.repository, Tag: name})
	default:
		return readFile(io, name)
	}
}

func (p *places) fetch(ctx context.Context, address string, ref transfer.Ref) (*packagesv1.PackageBundle, error) {
	from, err := p.open(address)
	if err != nil {
		return nil, err
	}
	found, err := transfer.Fetch(ctx, from, ref)
	if err != nil {
		return nil, err
	}
	return found.PackageBundle, nil
}

// isTag tells names of bundles from names of files.
func isTag(name string) bool {
	_, err := bundle.ParseName(strings.TrimSuffix(name, "-latest") + strings.Repeat("-0", strings.Count(name, "-latest")))
	return err == nil && !strings.ContainsAny(name, "/.")
}

// splitReference takes oci://host/path/repository:tag apart.
func splitReference(reference string) (address, repository, tag string, err error) {
	address = strings.TrimPrefix(reference, scheme)
	if i := strings.LastIndex(address, ":"); i > strings.LastIndex(address, "/") {
		address, tag = address[:i], address[i+1:]
	}
	address, repository = path.Split(address)
	if address == "" || repository == "" || tag == "" {
		return "", "", "", ui.Usagef("%q is not like oci://HOST/PATH/REPOSITORY:TAG", reference)
	}
	return address, repository, tag, nil
}

// readFile reads a bundle from a file, or from the standard input.
func readFile(io *ui.IO, file string) (*packagesv1.PackageBundle, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = stdio.ReadAll(stdio.LimitReader(io.In, bundle.MaxSize+1))
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	b, err := bundle.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	return b, nil
}

// readKeys reads files with public keys, each known by the name of its file.
func readKeys(files []string) (bundle.Keys, error) {
	texts := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the public key: %w", err)
		}
		texts[file] = text
	}
	return bundle.ParseKeys(texts)
}

func addKeys(cmd *cobra.Command, files *[]string, usage string) {
	cmd.Flags().StringArrayVar(files, "key", nil, usage)
	_ = cmd.MarkFlagFilename("key", "pub", "pem")
}
