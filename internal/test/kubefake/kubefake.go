// Package kubefake replaces Kubernetes in tests of building, caching and finding it: a module that
// compiles in a second to a program that reports its version, which the linker sets in the same
// place as in the real one. [Program] does the same for programs that are recognized by the module
// and version recorded in them. Start at [Source].
package kubefake

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const mainGo = `package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/version"
)

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		fmt.Printf("{\"clientVersion\": {\"gitVersion\": %q}}\n", version.Get())
		return
	}
	fmt.Println(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...))
}
`

const versionGo = `package version

var gitVersion = "v0.0.0"

func Get() string { return gitVersion }
`

// Source writes a source directory with the layout of kube/kubernetes: go.mod pins v1.36.3 and
// v1.35.mod pins v1.35.4. It returns the directory.
func Source(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"main.go":                                mainGo,
		"go.mod":                                 modFile("v1.36.3"),
		"v1.35.mod":                              modFile("v1.35.4"),
		"staging/kubernetes/go.mod":              "module k8s.io/kubernetes\n",
		"staging/component-base/go.mod":          "module k8s.io/component-base\n",
		"staging/component-base/version/base.go": versionGo,
	}
	for name, content := range files {
		Write(t, filepath.Join(dir, filepath.FromSlash(name)), content)
	}
	return dir
}

// Program compiles a program that does nothing to a file. The go command records the module in its
// version, as it does for a program that was downloaded.
func Program(t testing.TB, file, module, version string) {
	t.Helper()
	dir := t.TempDir()
	required := "# " + module + " " + version + "\n## explicit; go 1.26.0\n" + module + "\n"
	Write(t, filepath.Join(dir, "go.mod"), "module example.com/program\n\ngo 1.26.0\n\nrequire "+module+" "+version+"\n")
	Write(t, filepath.Join(dir, "vendor", "modules.txt"), required)
	Write(t, filepath.Join(dir, "vendor", filepath.FromSlash(module), "main.go"), "package main\n\nfunc main() {}\n")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-mod=vendor", "-o", file, module)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compiling %s %s: %v\n%s", module, version, err, out)
	}
}

// Write writes a file and the directories above it.
func Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func modFile(version string) string {
	return `module example.com/kube

go 1.26.0

require (
	k8s.io/component-base v0.0.0
	k8s.io/kubernetes ` + version + `
)

replace (
	k8s.io/component-base => ./staging/component-base
	k8s.io/kubernetes => ./staging/kubernetes
)
`
}
