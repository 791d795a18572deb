package bundle

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	stdio "io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func newKeygen(io *ui.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a key to sign bundles with",
		Long: `Make a key to sign bundles with. The private key is written to FILE, for you alone to
read; the public key, which others check signatures with, to FILE.pub. Files that are
there are never replaced.

Keys are ECDSA on the curve P-256, in PEM. openssl makes the same:

  openssl ecparam -name prime256v1 -genkey -noout -out release.key
  openssl ec -in release.key -pubout -out release.key.pub`,
		Example: `  drover bundle keygen release.key`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			public, err := makeKey(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(io.Out, "Private key  %[1]s\nPublic key   %[1]s.pub\n             %[2]s\n", args[0], base64.StdEncoding.EncodeToString(public))
			return err
		},
	}
}

func makeKey(file string) ([]byte, error) {
	for _, name := range []string{file, file + ".pub"} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("%q is there already, and keys are never replaced", name), err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	err = atomicfile.Write(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)
	if err == nil {
		err = atomicfile.Write(file+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the key: %w", err)
	}
	return public, nil
}

type signOptions struct {
	key      string
	file     string
	excludes []string
}

func newSign(io *ui.IO) *cobra.Command {
	o := &signOptions{}
	cmd := &cobra.Command{
		Use:   "sign FILE --key KEY",
		Short: "Sign a bundle",
		Long: `Sign a bundle, and write it back to its file. A signature that it has is replaced.

KEY is a private key in PEM, as "drover bundle keygen" and openssl write it: ECDSA on
the curve P-256.

What is signed is the whole bundle, but for its minControllerVersion, and for the paths
that --exclude names. These are the registry and the repository of each package, unless
you say otherwise, so that whoever mirrors the charts can say where they are now. What a
chart is remains signed: it is known by its digest.`,
		Example: `  drover bundle sign v1-36-1.yaml --key release.key
  drover bundle sign v1-36-1.yaml --key release.key --exclude ''   # sign everything
  drover bundle build bundle.yaml -f - | drover bundle sign - --key release.key > v1-36-1.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFiles(1, "yaml", "yml"),
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(io, args[0]) },
	}
	cmd.Flags().StringVar(&o.key, "key", "", "`file` with the private key")
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`file` to write the signed bundle to, - for the standard output (default: where it came from)")
	cmd.Flags().StringArrayVar(&o.excludes, "exclude", bundle.DefaultExcludes, "`path`, as in jq, that is not signed; may be repeated")
	_ = cmd.MarkFlagFilename("key", "key", "pem")
	return cmd
}

func (o *signOptions) run(io *ui.IO, from string) error {
	if o.key == "" {
		return ui.Usagef("name the private key with --key: `drover bundle keygen FILE` makes one")
	}
	text, err := os.ReadFile(o.key)
	if err != nil {
		return fmt.Errorf("reading the private key: %w", err)
	}
	key, err := bundle.ParsePrivateKey(text)
	if err != nil {
		return fmt.Errorf("reading the private key %q: %w", o.key, err)
	}
	b, err := readFile(io, from)
	if err != nil {
		return err
	}
	if err := bundle.Check(b); err != nil {
		return fmt.Errorf("the bundle %s could not be used, and is not signed:\n%w", b.Name, err)
	}
	if err := o.sign(b, key); err != nil {
		return err
	}
	return o.write(io, b, cmp.Or(o.file, from))
}

func (o *signOptions) sign(b *packagesv1.PackageBundle, key *ecdsa.PrivateKey) error {
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	delete(b.Annotations, packagesv1.ExcludesAnnotation)
	if excludes := nonEmpty(o.excludes); len(excludes) > 0 {
		b.Annotations[packagesv1.ExcludesAnnotation] = bundle.EncodeExcludes(excludes)
	}
	return bundle.Sign(b, key)
}

func nonEmpty(texts []string) []string {
	var out []string
	for _, text := range texts {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

func (o *signOptions) write(io *ui.IO, b *packagesv1.PackageBundle, file string) error {
	text, err := bundle.Format(b)
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := io.Out.Write(text)
		return err
	}
	if err := atomicfile.Write(file, text, 0o644); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	_, err = fmt.Fprintf(io.Out, "Signed %s in %s\n", b.Name, file)
	return err
}

// verified is what -o json prints.
type verified struct {
	Bundle string `json:"bundle"`
	Key    string `json:"key"`
	Public string `json:"publicKey"`
}

func newVerify(io *ui.IO) *cobra.Command {
	var p places
	var output ui.Output
	var files []string
	cmd := &cobra.Command{
		Use:   "verify BUNDLE --key KEY",
		Short: "Check who signed a bundle",
		Long: `Check that one of the keys signed a bundle. It is a file, a tag in --registry, or an
oci:// reference, as "drover bundle --help" tells.

KEY is a file with a public key in PEM, of which there may be several, or base64 of PKIX.
The command fails if none of them signed the bundle, or if it was changed since then.`,
		Example: `  drover bundle verify v1-36-1.yaml --key release.key.pub
  drover bundle verify v1-36-latest --key old.pub --key new.pub
  drover bundle verify oci://registry.example.com/packages/bundles:v1-36-1 --key release.key.pub`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFiles(1, "yaml", "yml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 {
				return ui.Usagef("name the public key with --key")
			}
			keys, err := readKeys(files)
			if err != nil {
				return err
			}
			b, err := p.load(cmd.Context(), io, args[0])
			if err != nil {
				return err
			}
			key, err := bundle.SignedBy(b, keys)
			if err != nil {
				return fmt.Errorf("bundle %s: %w", b.Name, err)
			}
			result := verified{Bundle: b.Name, Key: key.Name, Public: key.String()}
			return output.Print(io.Out, result, func(w stdio.Writer) error {
				_, err := fmt.Fprintf(w, "%s is signed with %s\n", result.Bundle, result.Key)
				return err
			})
		},
	}
	addKeys(cmd, &files, "`file` with a public key that is trusted; may be repeated")
	p.add(cmd)
	p.addRegistry(cmd)
	output.AddFlag(cmd)
	return cmd
}
