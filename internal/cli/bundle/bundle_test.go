package bundle_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	cli "github.com/drover-dev/drover/internal/cli/bundle"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// desk is a directory with charts and the definition of a bundle.
type desk struct {
	t   *testing.T
	dir string
}

// result is the output and the exit code of a command.
type result struct {
	code     int
	out, err string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	d.write("charts/hello/Chart.yaml", "apiVersion: v2\nname: hello\nversion: 1.0.0\n")
	d.write("charts/hello/values.schema.json", `{"type": "object", "additionalProperties": false, "properties": {"title": {"type": "string"}}}`)
	d.write("charts/hello/templates/a.yaml", "a: b\n")
	d.write("charts/base/Chart.yaml", "apiVersion: v2\nname: base\nversion: 0.3.0+build.1\n")
	d.write("bundle.yaml", `kubeVersion: "1.36"
build: 1
minControllerVersion: v0.1.0
packages:
- versions:
  - chart: charts/hello
    dependencies: [base]
- name: base
  workloadonly: true
  repository: team/base
  versions:
  - chart: charts/base
    kubeVersions: ["1.36"]
`)
	return d
}

func (d *desk) path(file string) string { return filepath.Join(d.dir, file) }

func (d *desk) write(file, content string) {
	d.t.Helper()
	must(d.t, os.MkdirAll(filepath.Dir(d.path(file)), 0o700))
	must(d.t, os.WriteFile(d.path(file), []byte(content), 0o600))
}

func (d *desk) read(file string) string {
	d.t.Helper()
	content, err := os.ReadFile(d.path(file))
	must(d.t, err)
	return string(content)
}

// run runs a command. Arguments that start with @ are files of the desk.
func (d *desk) run(args ...string) result {
	d.t.Helper()
	return d.pipe("", args...)
}

func (d *desk) pipe(input string, args ...string) result {
	d.t.Helper()
	var out, problems bytes.Buffer
	io := &ui.IO{In: strings.NewReader(input), Out: &out, Err: &problems}
	cmd := &cobra.Command{Use: "drover"}
	cmd.AddGroup(&cobra.Group{ID: "packages"})
	cli.AddCommands(cmd, "packages", io)
	if args[0] != "copy" || args[1] != "packages" {
		args = append([]string{"bundle"}, args...)
	}
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&problems)
	for i, arg := range args {
		if file, found := strings.CutPrefix(arg, "@"); found {
			args[i] = d.path(file)
		}
	}
	cmd.SetArgs(args)
	code := ui.Report(&problems, cmd.ExecuteContext(d.t.Context()))
	return result{code, out.String(), problems.String()}
}

// must runs a command that must succeed.
func (d *desk) must(args ...string) string {
	d.t.Helper()
	r := d.run(args...)
	if r.code != 0 {
		d.t.Fatalf("drover bundle %s: %s", strings.Join(args, " "), r.err)
	}
	return r.out
}

// signed builds and signs a bundle with its charts.
func (d *desk) signed() {
	d.t.Helper()
	d.must("build", "@bundle.yaml", "-f", "@v1-36-1.yaml", "--charts", "@out")
	d.must("keygen", "@release.key")
	d.must("sign", "@v1-36-1.yaml", "--key", "@release.key")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r result) says(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d: %s", r.code, code, r.err)
	}
	for _, want := range words {
		if !strings.Contains(r.out+r.err, want) {
			t.Errorf("%q is missing in the output:\n%s%s", want, r.out, r.err)
		}
	}
}

func TestBuildFromDefinition(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.run("build", "@bundle.yaml", "-f", "@first.yaml", "--charts", "@out")
	r.says(t, 0, "hello", "charts/hello", "team/base", "Wrote ", "drover bundle sign")
	b, err := bundle.Parse([]byte(d.read("first.yaml")))
	must(t, err)
	if b.Name != "v1-36-1" || b.Namespace != "eksa-packages" || b.Spec.MinVersion != "v0.1.0" {
		t.Errorf("the bundle is %s in %s for %s", b.Name, b.Namespace, b.Spec.MinVersion)
	}
	must(t, bundle.Check(b))
	hello, err := bundle.Find(b, "hello", "1.0.0")
	must(t, err)
	if err := bundle.ValidateConfig(hello.Version, "nothing: known"); err == nil {
		t.Error("the bundle lacks the schema of the chart")
	}
	base, err := bundle.Find(b, "base", "0.3.0_build.1")
	must(t, err)
	if !base.Package.WorkloadOnly || base.Package.Source.Repository != "team/base" || base.Version.Schema != "" {
		t.Errorf("base is %+v", base.Package)
	}
	d.must("build", "@bundle.yaml", "-f", "@second.yaml")
	if diff := cmp.Diff(d.read("first.yaml"), d.read("second.yaml")); diff != "" {
		t.Errorf("the same charts resulted in another bundle:\n%s", diff)
	}
	d.run("build", "@bundle.yaml", "-f", "@third.yaml", "--kube-version", "1.35", "--build", "7").says(t, 1, "package not found in bundle (v1-35-7): base")
}

func TestBuildFromDirectory(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.must("build", "@charts", "--kube-version", "v1.36", "--build", "3", "-f", "@v.yaml", "--charts", "@out", "--min-version", "v0.2.0")
	b, err := bundle.Parse([]byte(d.read("v.yaml")))
	must(t, err)
	if b.Name != "v1-36-3" || len(b.Spec.Packages) != 2 || b.Spec.Packages[0].Source.Repository != "charts/base" || b.Spec.MinVersion != "v0.2.0" {
		t.Errorf("the bundle is %+v", b)
	}
	// Building from the written archives results in the same bundle.
	d.must("build", "@out", "--kube-version", "1.36", "--build", "3", "-f", "@w.yaml", "--min-version", "v0.2.0")
	if diff := cmp.Diff(d.read("v.yaml"), d.read("w.yaml")); diff != "" {
		t.Errorf("archives resulted in another bundle:\n%s", diff)
	}
}

func TestBuildErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("empty/README.md", "")
	d.write("typo.yaml", "kubeVersions: 1.36\npackages: []\n")
	d.write("none.yaml", "kubeVersion: '1.36'\nbuild: 1\npackages: []\n")
	d.write("lost.yaml", "kubeVersion: '1.36'\nbuild: 1\npackages: [{versions: [{chart: nowhere}]}]\n")
	d.write("charts/other/Chart.yaml", "apiVersion: v2\nname: another\nversion: 1.0.0\n")
	d.write("charts/loop/Chart.yaml", "apiVersion: v2\nname: loop\nversion: 1.0.0\n")
	d.write("charts/loop/values.schema.json", `{"$ref": "#"}`)
	d.write("loop.yaml", "kubeVersion: '1.36'\nbuild: 1\npackages: [{versions: [{chart: charts/loop}]}]\n")
	tests := map[string]struct {
		args []string
		want string
	}{
		"no such file":    {[]string{"@x.yaml"}, "no such file"},
		"no charts":       {[]string{"@empty", "--kube-version", "1.36", "--build", "1"}, "no charts found in"},
		"no version":      {[]string{"@charts", "--build", "1"}, "please specify kube-version as <major>.<minor>"},
		"bad version":     {[]string{"@charts", "--build", "1", "--kube-version", "1.36.3"}, "please specify kube-version as <major>.<minor>"},
		"no build":        {[]string{"@charts", "--kube-version", "1.36"}, "build number must be at least 1"},
		"a typo":          {[]string{"@typo.yaml"}, `unknown field "kubeVersions"`},
		"no packages":     {[]string{"@none.yaml"}, "the bundle contains no packages"},
		"no chart":        {[]string{"@lost.yaml"}, "nowhere"},
		"another name":    {[]string{"@charts", "--kube-version", "1.36", "--build", "1"}, `chart "another" is in directory "other"`},
		"an endless loop": {[]string{"@loop.yaml"}, "refers to itself"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { d.run(append([]string{"build"}, tt.args...)...).says(t, 1, tt.want) })
	}
}

func TestSigningAndVerifying(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signed()
	d.must("keygen", "@other.key")
	if info, err := os.Stat(d.path("release.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the private key: %v, %v", info.Mode(), err)
	}
	d.run("verify", "@v1-36-1.yaml", "--key", "@release.key.pub").says(t, 0, "v1-36-1 is signed with "+d.path("release.key.pub"))
	d.run("verify", "@v1-36-1.yaml", "--key", "@other.key.pub", "--key", "@release.key.pub").says(t, 0)
	d.run("verify", "@v1-36-1.yaml", "--key", "@other.key.pub").says(t, 1, "The signature is invalid for the configured public key: ")
	d.run("verify", "@v1-36-1.yaml").says(t, 2, "--key")
	d.run("verify", "@v1-36-1.yaml", "--key", "@release.key").says(t, 1, "not a PUBLIC KEY")
	d.run("keygen", "@release.key").says(t, 1, "keys are never overwritten")

	d.write("mirrored.yaml", strings.Replace(d.read("v1-36-1.yaml"), "repository: team/base", "registry: mirror.example.com\n      repository: mirror/base", 1))
	d.run("verify", "@mirrored.yaml", "--key", "@release.key.pub").says(t, 0)
	d.write("changed.yaml", strings.Replace(d.read("v1-36-1.yaml"), "workloadonly: true", "workloadonly: false", 1))
	d.run("verify", "@changed.yaml", "--key", "@release.key.pub").says(t, 1, "The signature is invalid")

	strict := d.pipe(d.read("v1-36-1.yaml"), "sign", "-", "--key", "@release.key", "--exclude", "")
	strict.says(t, 0)
	d.pipe(strict.out, "verify", "-", "--key", "@release.key.pub").says(t, 0)
	d.pipe(strings.Replace(strict.out, "repository: team/base", "repository: mirror/base", 1), "verify", "-", "--key", "@release.key.pub").says(t, 1, "The signature is invalid")
}

func TestSignWithOpenSSLKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.must("build", "@bundle.yaml", "-f", "@v1-36-1.yaml")
	for _, args := range [][]string{
		{"ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", d.path("release.key")}, {"ec", "-in", d.path("release.key"), "-pubout", "-out", d.path("release.key.pub")},
	} {
		must(t, exec.CommandContext(t.Context(), "openssl", args...).Run())
	}
	d.must("sign", "@v1-36-1.yaml", "--key", "@release.key")
	d.must("verify", "@v1-36-1.yaml", "--key", "@release.key.pub")
}

func TestSignErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signed()
	before := d.read("v1-36-1.yaml")
	d.write("no.key", "secret words\n")
	d.write("bad.yaml", strings.Replace(before, "name: v1-36-1", "name: mine", 1))
	d.run("sign", "@v1-36-1.yaml").says(t, 2, "drover bundle keygen")
	d.run("sign", "@v1-36-1.yaml", "--key", "@release.key.pub").says(t, 1, "no private key")
	d.run("sign", "@v1-36-1.yaml", "--key", "@release.key", "--exclude", "env").says(t, 1, "invalid selector(s) provided")
	d.run("sign", "@bad.yaml", "--key", "@release.key").says(t, 1, "Invalid bundle name", "was not signed")
	if r := d.run("sign", "@v1-36-1.yaml", "--key", "@no.key"); r.code != 1 || strings.Contains(r.err, "secret") {
		t.Errorf("the error contains the key: %s", r.err)
	}
	if d.read("v1-36-1.yaml") != before {
		t.Error("a bundle that could not be signed was changed")
	}
}

func TestPushAndPull(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signed()
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	here := []string{"--registry", r.Host + "/site", "--plain-http"}
	with := func(args ...string) []string { return append(args, here...) }

	d.run(with("push", "@v1-36-1.yaml")...).says(t, 1, "chart charts/hello:1.0.0", "nothing was written", "--charts")
	d.run(with("push", "@v1-36-1.yaml", "--charts", "@out")...).says(t, 0, "chart   charts/hello:1.0.0: sent", "/site/eks-anywhere-packages-bundles:v1-36-1\n", ":v1-36-latest\n")
	d.run(with("push", "@v1-36-1.yaml", "--charts", "@out")...).says(t, 0, "chart   charts/hello:1.0.0: already exists", "Sent 0 B of")

	for _, args := range [][]string{{"v1-36-1"}, {"--kube-version", "1.36"}, {"oci://" + r.Host + "/site/eks-anywhere-packages-bundles:v1-36-1"}} {
		pulled := d.run(with(append([]string{"pull", "--key", "@release.key.pub"}, args...)...)...)
		pulled.says(t, 0)
		if diff := cmp.Diff(d.read("v1-36-1.yaml"), pulled.out); diff != "" {
			t.Errorf("%v: another bundle was pulled:\n%s", args, diff)
		}
	}
	d.must("keygen", "@other.key")
	d.run(with("pull", "v1-36-1", "--key", "@other.key.pub", "-f", "@not.yaml")...).says(t, 1, "The signature is invalid")
	if _, err := os.Stat(d.path("not.yaml")); err == nil {
		t.Error("a bundle without a trusted signature was written")
	}
	d.run(with("pull", "v1-36-1", "-f", "@again.yaml")...).says(t, 0, "Wrote v1-36-1 to ")
	var parsed struct{ Kind string }
	must(t, json.Unmarshal([]byte(d.must(with("pull", "v1-36-1", "-o", "json")...)), &parsed))
	if parsed.Kind != "PackageBundle" {
		t.Errorf("-o json printed a %q", parsed.Kind)
	}
	d.run(with("pull", "v1-36-2")...).says(t, 1, "not found")
	d.run(with("pull")...).says(t, 2, "--kube-version")
	d.run(with("pull", "--kube-version", "1.36.1")...).says(t, 2, "please specify kube-version as <major>.<minor>")
	d.run(with("pull", "v1-36-1", "--kube-version", "1.36")...).says(t, 2, "not both")
	d.run("pull", "v1-36-1", "--registry", r.Host+"/site").says(t, 1, "--plain-http")
}

func TestPushWarnsOfUnsignedBundle(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{ServerOptions: artifacttest.ServerOptions{TLS: true}})
	d.write("ca.crt", string(r.CA))
	d.must("build", "@bundle.yaml", "-f", "@v1-36-1.yaml", "--charts", "@out")
	d.run("push", "@v1-36-1.yaml", "--charts", "@out", "--registry", r.Host).says(t, 1, "certificate")
	d.run("push", "@v1-36-1.yaml", "--charts", "@out", "--registry", r.Host, "--ca", "@ca.crt").says(t, 0, "Warning: v1-36-1 is not signed")
	d.run("push", "@v1-36-1.yaml", "--charts", "@out", "--registry", r.Host, "--insecure-skip-tls-verify").says(t, 0)
}

func TestDiff(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signed()
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	d.must("push", "@v1-36-1.yaml", "--charts", "@out", "--registry", r.Host, "--plain-http")
	d.write("charts/hello/Chart.yaml", "apiVersion: v2\nname: hello\nversion: 1.1.0\n")
	d.write("charts/new/Chart.yaml", "apiVersion: v2\nname: new\nversion: 0.1.0\n")
	d.write("bundle.yaml", `kubeVersion: "1.36"
build: 2
packages:
- versions:
  - chart: charts/hello
    images: [{repository: images/hello, digest: "sha256:`+strings.Repeat("0", 64)+`"}]
- versions: [{chart: charts/new}]
`)
	d.must("build", "@bundle.yaml", "-f", "@v1-36-2.yaml")
	want := `v1-36-1 → v1-36-2
- base 0.3.0_build.1
    - version 0.3.0_build.1
~ hello 1.0.0 → 1.1.0
    - version 1.0.0
    + version 1.1.0
    + image images/hello sha256:000000000000
+ new 0.1.0
    + version 0.1.0
`
	got := d.run("diff", "@v1-36-1.yaml", "@v1-36-2.yaml")
	got.says(t, 1)
	if diff := cmp.Diff(want, got.out); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	d.run("diff", "v1-36-latest", "@v1-36-1.yaml", "--registry", r.Host, "--plain-http").says(t, 0, "No differences.")
	d.run("diff", "v1-36-7", "@v1-36-1.yaml", "--registry", r.Host, "--plain-http").says(t, 2, "not found")
	var parsed bundle.Difference
	must(t, json.Unmarshal([]byte(d.run("diff", "@v1-36-1.yaml", "@v1-36-2.yaml", "-o", "json").out), &parsed))
	if len(parsed.Packages) != 3 || parsed.To != "v1-36-2" {
		t.Errorf("-o json printed %+v", parsed)
	}
}

func TestCopyThroughAnArchive(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	image, err := random.Image(3000, 2)
	must(t, err)
	digest, err := image.Digest()
	must(t, err)
	place, err := name.NewDigest(r.Host+"/pictures/hello@"+digest.String(), name.Insecure)
	must(t, err)
	must(t, remote.Write(place, image))
	d.write("bundle.yaml", "kubeVersion: '1.36'\nbuild: 1\npackages: [{versions: [{chart: charts/hello, images: [{repository: hello, digest: '"+digest.String()+"'}]}]}]\n")
	d.signed()
	d.must("push", "@v1-36-1.yaml", "--charts", "@out", "--registry", r.Host+"/packages", "--plain-http")
	from := "oci://" + r.Host + "/packages"

	d.run("copy", from, "@site.tar", "--kube-version", "1.36", "--plain-http").says(t, 1, "image hello@"+digest.String(), "nothing was written")
	pictures := []string{"--image-registry", r.Host + "/pictures", "--plain-http", "--key", "@release.key.pub"}
	d.run(append([]string{"copy", from, "@site.tar", "--kube-version", "1.36", "--dry-run"}, pictures...)...).says(t, 0, "Would send")
	if _, err := os.Stat(d.path("site.tar")); err == nil {
		t.Error("a dry run wrote an archive")
	}
	d.run(append([]string{"copy", from, "@site.tar", "--bundle", "v1-36-1"}, pictures...)...).says(t, 0, "site.tar")
	d.run(append([]string{"copy", from, "@site.tar", "--bundle", "v1-36-1"}, pictures...)...).says(t, 1, "already exists")

	other := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	to := "oci://" + other.Host + "/mirror"
	var done struct {
		Bundle string
		Tags   []string
		Items  []struct{ Kind string }
	}
	must(t, json.Unmarshal([]byte(d.must("copy", "@site.tar", to, "--plain-http", "-o", "json", "--key", "@release.key.pub")), &done))
	if done.Bundle != "v1-36-1" || len(done.Tags) != 2 || len(done.Items) != 3 {
		t.Errorf("-o json printed %+v", done)
	}
	d.run("copy", "@site.tar", to, "--plain-http").says(t, 0, "Sent 0 B of")
	d.run("verify", to+"/eks-anywhere-packages-bundles:v1-36-latest", "--key", "@release.key.pub", "--plain-http").says(t, 0)

	d.must("keygen", "@other.key")
	d.run("copy", "@site.tar", to, "--plain-http", "--key", "@other.key.pub").says(t, 1, "The signature is invalid")
	d.run("copy", "@site.tar", to, "--plain-http", "--bundle", "v1-36-9").says(t, 2, "v1-36-1")
	d.run("copy", from, to, "--plain-http").says(t, 2, "--kube-version")
	d.run("copy", to, to).says(t, 2, "the same")
	d.run("copy", "@bundle.yaml", to).says(t, 1, "not a bundle archive")
}

func TestCopyPackages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signed()
	from := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	to := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{ServerOptions: artifacttest.ServerOptions{TLS: true}})
	d.must("push", "@v1-36-1.yaml", "--charts", "@out", "--registry", from.Host, "--plain-http")
	source := []string{"--src-chart-registry", from.Host, "--src-image-registry", from.Host, "--plain-http"}
	run := func(args ...string) result {
		return d.run(append(append([]string{"copy", "packages"}, args...), source...)...)
	}
	run(to.Host+"/mirror", "--kube-version", "1.36").says(t, 1, "registry responded 400")
	run(to.Host+"/mirror", "--kube-version", "1.36", "--dst-insecure", "--dry-run").says(t, 0, "Would send")
	run(to.Host+"/mirror", "--kube-version", "1.36", "--dst-insecure").says(t, 0, "/mirror/eks-anywhere-packages-bundles:v1-36-latest")
	d.run("verify", "v1-36-1", "--registry", to.Host+"/mirror", "--insecure-skip-tls-verify", "--key", "@release.key.pub").says(t, 0)
	run(to.Host).says(t, 2, "--kube-version")
	run(to.Host, "--kube-version", "1.36.1").says(t, 2, "please specify kube-version as <major>.<minor>")
	d.run("copy", "packages", to.Host, "--kube-version", "1.36").says(t, 2, "--src-image-registry")
}

func TestCommandsWithoutPlane(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.signed()
	for _, args := range [][]string{
		{"push", "@v1-36-1.yaml"}, {"pull", "v1-36-1"}, {"copy", "plane", "@x.tar", "--kube-version", "1.36"}, {"verify", "v1-36-1", "--key", "@release.key.pub"},
	} {
		d.run(append(args, "--home", "@home")...).says(t, 1, "no plane in this home: run `drover up`")
	}
}

func TestEveryCommandHasHelpAndExamples(t *testing.T) {
	t.Parallel()
	for _, c := range cli.NewCommand(&ui.IO{}).Commands() {
		if len(c.Long) < 200 || c.Example == "" {
			t.Errorf("%q lacks help or examples", c.Name())
		}
	}
}
