package manifests

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

// kustomization returns the kustomization file of a directory.
func kustomization(files map[string][]byte, dir string) ([]byte, bool) {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if content, ok := files[path.Join(dir, name)]; ok {
			return content, true
		}
	}
	return nil, false
}

// kustomize builds a kustomization in memory. It checks references first, because kustomize would
// access the network and run git for those outside the archive.
func kustomize(files map[string][]byte, dir string) ([]*unstructured.Unstructured, error) {
	if err := (checker{files: files, seen: map[string]bool{}}).check(dir); err != nil {
		return nil, err
	}
	fs := filesys.MakeFsInMemory()
	for name, content := range files {
		if err := fs.WriteFile("/"+name, content); err != nil {
			return nil, fmt.Errorf("preparing %q: %w", name, err)
		}
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	built, err := krusty.MakeKustomizer(options).Run(fs, "/"+dir)
	if err != nil {
		return nil, fmt.Errorf("building kustomization %q: %w", path.Join("/", dir), objects.Redact(err, nil)) // may quote parts of the package
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, errors.New("kustomization produced invalid YAML")
	}
	return parse(text)
}

// checker rejects references that point outside an archive.
type checker struct {
	files map[string][]byte
	seen  map[string]bool
}

// references are the parts of a kustomization that name files or directories.
type references struct {
	Resources             []string    `json:"resources"`
	Bases                 []string    `json:"bases"`
	Components            []string    `json:"components"`
	CRDs                  []string    `json:"crds"`
	Configurations        []string    `json:"configurations"`
	PatchesStrategicMerge []string    `json:"patchesStrategicMerge"`
	Patches               []pathOf    `json:"patches"`
	PatchesJSON6902       []pathOf    `json:"patchesJson6902"`
	Replacements          []pathOf    `json:"replacements"`
	OpenAPI               pathOf      `json:"openapi"`
	ConfigMaps            []generator `json:"configMapGenerator"`
	Secrets               []generator `json:"secretGenerator"`

	// These run plugins or name files in other ways.
	Generators   []any `json:"generators"`
	Transformers []any `json:"transformers"`
	Validators   []any `json:"validators"`
	HelmCharts   []any `json:"helmCharts"`
	HelmInflator []any `json:"helmChartInflationGenerator"`
}

type pathOf struct {
	Path string `json:"path"`
}

type generator struct {
	Files []string `json:"files"`
	Envs  []string `json:"envs"`
	Env   string   `json:"env"`
}

// check checks the kustomization of a directory and of its bases.
func (c checker) check(dir string) error {
	if c.seen[dir] {
		return nil
	}
	c.seen[dir] = true
	content, ok := kustomization(c.files, dir)
	if !ok {
		return fmt.Errorf("no kustomization in %q", path.Join("/", dir))
	}
	var refs references
	if err := safeyaml.Unmarshal(content, &refs); err != nil {
		return fmt.Errorf("invalid kustomization in %q", path.Join("/", dir))
	}
	if len(refs.Generators)+len(refs.Transformers)+len(refs.Validators)+len(refs.HelmCharts)+len(refs.HelmInflator) > 0 {
		return fmt.Errorf("kustomization in %q uses generators, transformers, validators or Helm charts, which are not supported", path.Join("/", dir))
	}
	for _, ref := range refs.all() {
		if err := c.follow(dir, ref); err != nil {
			return err
		}
	}
	return nil
}

func (r *references) all() []string {
	var out []string
	for _, list := range [][]string{r.Resources, r.Bases, r.Components, r.CRDs, r.Configurations} {
		out = append(out, list...)
	}
	for _, patch := range r.PatchesStrategicMerge {
		if !strings.Contains(patch, "\n") { // else an inline patch
			out = append(out, patch)
		}
	}
	for _, list := range [][]pathOf{r.Patches, r.PatchesJSON6902, r.Replacements, {r.OpenAPI}} {
		for _, p := range list {
			out = append(out, p.Path)
		}
	}
	for _, list := range [][]generator{r.ConfigMaps, r.Secrets} {
		for _, g := range list {
			for _, file := range append(append(g.Files, g.Envs...), g.Env) {
				if _, after, ok := strings.Cut(file, "="); ok {
					file = after
				}
				out = append(out, file)
			}
		}
	}
	return out
}

// follow rejects a reference that is not a path in the archive, or that could also be a URL.
func (c checker) follow(dir, ref string) error {
	if ref == "" {
		return nil
	}
	target := path.Join("/", dir, ref)[1:]
	remote := strings.ContainsAny(ref, ":@?") || strings.HasPrefix(strings.ToLower(ref), "github.com") || path.IsAbs(ref)
	_, isFile := c.files[target]
	switch {
	case remote, !isFile && !has(c.files, target):
		return fmt.Errorf("kustomization in %q refers to %q, which is not in the archive; remote references are not supported", path.Join("/", dir), ref)
	case isFile:
		return nil
	default:
		return c.check(target)
	}
}
