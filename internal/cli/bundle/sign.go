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
		Short: "Create a key for signing bundles",
		Long: `Create a key for signing bundles. The private key is written to FILE, readable only by
you, and the public key, which verifies signatures, to FILE.pub. Existing files are never
overwritten.

Keys are ECDSA P-256 in PEM. openssl creates the same keys:

  openssl ecparam -name prime256v1 -genkey -noout -out release.key
  openssl ec -in release.key -pubout -out release.key.pub`,
		Example: `  drover bundle keygen release.key`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			public, err := createKey(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(io.Out, "Private key  %[1]s\nPublic key   %[1]s.pub\n             %[2]s\n", args[0], base64.StdEncoding.EncodeToString(public))
			return err
		},
	}
}

func createKey(file string) ([]byte, error) {
	for _, name := range []string{file, file + ".pub"} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("%q already exists; keys are never overwritten", name), err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the key: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("creating the key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("creating the key: %w", err)
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
		Long: `Sign a bundle and write it back to its file, replacing an existing signature.

KEY is an ECDSA P-256 private key in PEM, as created by "drover bundle keygen" or openssl.

The signature covers the whole bundle except minControllerVersion and the paths in
--exclude. By default these are the registry and repository of each package, so that
mirrors can change the location of charts. Their content stays signed by digest.`,
		Example: `  drover bundle sign v1-36-1.yaml --key release.key
  drover bundle sign v1-36-1.yaml --key release.key --exclude ''   # sign everything
  drover bundle build bundle.yaml -f - | drover bundle sign - --key release.key > v1-36-1.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFiles(1, "yaml", "yml"),
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(io, args[0]) },
	}
	cmd.Flags().StringVar(&o.key, "key", "", "`file` with the private key")
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`file` to write the signed bundle to, or - for standard output (default: the input file)")
	cmd.Flags().StringArrayVar(&o.excludes, "exclude", bundle.DefaultExcludes, "`path` to leave unsigned, in jq syntax; may be repeated")
	_ = cmd.MarkFlagFilename("key", "key", "pem")
	return cmd
}

func (o *signOptions) run(io *ui.IO, from string) error {
	if o.key == "" {
		return ui.Usagef("--key is required; `drover bundle keygen FILE` creates a key")
	}
	key, err := bundle.ReadPrivateKey(o.key)
	if err != nil {
		return err
	}
	b, err := readFile(io, from)
	if err != nil {
		return err
	}
	if err := bundle.Check(b); err != nil {
		return fmt.Errorf("bundle %s is invalid and was not signed:\n%w", b.Name, err)
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

// verified is the output of verify.
type verified struct {
	Bundle string `json:"bundle"`
	Key    string `json:"key"`
	Public string `json:"publicKey"`
}

func newVerify(io *ui.IO) *cobra.Command {
	var p registries
	var output ui.Output
	var files []string
	cmd := &cobra.Command{
		Use:   "verify BUNDLE --key KEY",
		Short: "Verify the signature of a bundle",
		Long: `Verify that one of the keys signed a bundle: a file, a tag in --registry, or an oci://
reference (see "drover bundle --help").

KEY is a file with one or more public keys in PEM, or with one in base64-encoded PKIX.
The command fails if none of them signed the bundle in its current form.`,
		Example: `  drover bundle verify v1-36-1.yaml --key release.key.pub
  drover bundle verify v1-36-latest --key old.pub --key new.pub
  drover bundle verify oci://registry.example.com/packages/bundles:v1-36-1 --key release.key.pub`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFiles(1, "yaml", "yml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) == 0 {
				return ui.Usagef("--key is required")
			}
			keys, err := bundle.ReadKeys(files)
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
	addKeys(cmd, &files, "`file` with a trusted public key; may be repeated")
	p.add(cmd)
	p.addRegistry(cmd)
	output.AddFlag(cmd)
	return cmd
}
