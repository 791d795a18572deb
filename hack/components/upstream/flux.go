package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drover-dev/drover/config"
)

// fluxModules are the Flux controllers whose API Drover can serve.
var fluxModules = map[string]string{
	"source-controller":    "github.com/fluxcd/source-controller",
	"kustomize-controller": "github.com/fluxcd/kustomize-controller",
}

// generateFlux derives the CRDs of Flux from the modules that the module in dir pins.
func generateFlux(dir, out string) error {
	written := map[string]bool{}
	for controller, module := range fluxModules {
		root, err := download(dir, module)
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("no CRDs of %q in %q", controller, root)
		}
		for _, file := range files {
			name, err := convertCRD(file, out, fromFlux, fluxController(controller).adaptCRD)
			if err != nil {
				return err
			}
			written[name] = true
		}
	}
	return pruneDir(out, written)
}

// download returns the directory of a module after the go command has compared it with the sums of
// the module in dir.
func download(dir, module string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = dir
	var failure bytes.Buffer
	cmd.Stderr = &failure
	data, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("downloading module %q: %w: %s", module, err, &failure)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(data, &found); err != nil {
		return "", fmt.Errorf("downloading module %q: %w", module, err)
	}
	return found.Dir, nil
}

type fluxController string

// adaptCRD sets the labels by which upstream's command line finds an installation.
func (c fluxController) adaptCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Labels = map[string]string{
		config.LabelPartOf:            config.FluxPartOf,
		"app.kubernetes.io/instance":  config.FluxNamespace,
		"app.kubernetes.io/component": string(c),
	}
}
