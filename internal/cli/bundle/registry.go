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
	// ownPlane is the address that stands for the registry of the embedded plane.
	ownPlane = "plane"
	// defaultRepository is the default repository of bundles in a registry.
	defaultRepository = "eks-anywhere-packages-bundles"
	scheme            = "oci://"
)

// registries holds the flags that locate and open registries.
type registries struct {
	home       string
	registry   string
	repository string
	caFiles    []string
	plainHTTP  bool
	insecure   bool
}

// add adds the flags that open registries.
func (p *registries) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&p.home, "home", "", "`directory` that holds the state of the plane (default $DROVER_HOME, or ~/.drover)")
	flags.StringVar(&p.repository, "repository", defaultRepository, "`repository` of the bundles in a registry")
	flags.StringArrayVar(&p.caFiles, "ca", nil, "`file` with CA certificates to trust in addition to the system's; may be repeated")
	flags.BoolVar(&p.plainHTTP, "plain-http", false, "allow registries without TLS")
	flags.BoolVar(&p.insecure, "insecure-skip-tls-verify", false, "do not verify the certificates of registries")
	_ = cmd.MarkFlagDirname("home")
	_ = cmd.MarkFlagFilename("ca", "crt", "pem")
}

// addRegistry adds --registry.
func (p *registries) addRegistry(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.registry, "registry", ownPlane, "`registry` as HOST[:PORT][/PATH], or \"plane\" for the plane's registry")
	_ = cmd.RegisterFlagCompletionFunc("registry", cobra.FixedCompletions([]string{ownPlane}, cobra.ShellCompDirectiveNoFileComp))
}

// open opens a registry by its address.
func (p *registries) open(address string) (*transfer.Registry, error) {
	o := transfer.Options{Address: address, PlainHTTP: p.plainHTTP, SkipTLSVerify: p.insecure}
	for _, file := range p.caFiles {
		ca, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading CA certificates: %w", err)
		}
		o.CA = append(append(o.CA, ca...), '\n')
	}
	if address == ownPlane {
		return p.openPlane(o)
	}
	return transfer.Open(o)
}

// openPlane opens the registry of the embedded plane with the owner's password. The options still
// apply to other registries that its bundles name.
func (p *registries) openPlane(o transfer.Options) (*transfer.Registry, error) {
	dir, err := filepath.Abs(cmp.Or(p.home, plane.DefaultHome()))
	if err != nil {
		return nil, err
	}
	r, err := plane.ReadRegistry(plane.Home{Dir: dir})
	switch {
	case errors.Is(err, plane.ErrNoPlane):
		return nil, fmt.Errorf("%w: run `drover up` to create one, or pass the address of a registry", err)
	case err != nil:
		return nil, err
	case r.State == plane.Stopped:
		return nil, plane.ErrNotRunning
	}
	address, err := url.Parse(r.URL)
	if err != nil {
		return nil, fmt.Errorf("parsing the registry's URL %q: %w", r.URL, err)
	}
	ca, caErr := os.ReadFile(r.CAFile)
	password, passwordErr := os.ReadFile(r.PasswordFile)
	if err := errors.Join(caErr, passwordErr); err != nil {
		return nil, fmt.Errorf("opening the plane's registry: %w", err)
	}
	o.Address, o.CA = address.Host, append(o.CA, ca...)
	o.Username, o.Password = registry.User, string(bytes.TrimSpace(password))
	return transfer.Open(o)
}

// load reads a bundle from a file, a tag or an oci:// reference.
func (p *registries) load(ctx context.Context, io *ui.IO, name string) (*packagesv1.PackageBundle, error) {
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

func (p *registries) fetch(ctx context.Context, address string, ref transfer.Ref) (*packagesv1.PackageBundle, error) {
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

// isTag reports whether a name is the tag of a bundle rather than a file.
func isTag(name string) bool {
	_, err := bundle.ParseName(strings.TrimSuffix(name, "-latest") + strings.Repeat("-0", strings.Count(name, "-latest")))
	return err == nil && !strings.ContainsAny(name, "/.")
}

// splitReference splits oci://host/path/repository:tag.
func splitReference(reference string) (address, repository, tag string, err error) {
	address = strings.TrimPrefix(reference, scheme)
	if i := strings.LastIndex(address, ":"); i > strings.LastIndex(address, "/") {
		address, tag = address[:i], address[i+1:]
	}
	address, repository = path.Split(address)
	if address == "" || repository == "" || tag == "" {
		return "", "", "", ui.Usagef("invalid reference %q: want oci://HOST/PATH/REPOSITORY:TAG", reference)
	}
	return address, repository, tag, nil
}

// readFile reads a bundle from a file, or from standard input if the file is "-".
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
		return nil, fmt.Errorf("reading bundle %q: %w", file, err)
	}
	return b, nil
}

func addKeys(cmd *cobra.Command, files *[]string, usage string) {
	cmd.Flags().StringArrayVar(files, "key", nil, usage)
	_ = cmd.MarkFlagFilename("key", "pub", "pem")
}
