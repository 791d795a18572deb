package node

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube"
)

// imageSet maps the last word of a repository to the whole name that kubeadm
// asks for.
type imageSet map[string]string

// imageNames asks kubeadm, so that names and tags are right for every version.
func imageNames(ctx context.Context, binary kube.Binary) (imageSet, error) {
	cmd := binary.Command(ctx, "kubeadm", "config", "images", "list", "--kubernetes-version", binary.Version)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("asking kubeadm for its images: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return parseImageNames(string(out))
}

func parseImageNames(list string) (imageSet, error) {
	set := imageSet{}
	for image := range strings.FieldsSeq(list) {
		tag, err := name.NewTag(image)
		if err != nil {
			return nil, fmt.Errorf("kubeadm asks for %q: %w", image, err)
		}
		set[filepath.Base(tag.RepositoryStr())] = image
	}
	for _, component := range components() {
		if set[component] == "" {
			return nil, fmt.Errorf("kubeadm's list of images has no %q", component)
		}
	}
	return set, nil
}

// ToolsImage is an image with a shell, curl and socat that every machine has,
// for trying things out where nothing can be pulled.
const ToolsImage = "drover.local/tools:v1"

// NetworkImage is the agent that charts/cni runs on every node.
const NetworkImage = "drover-dev/cni:0.1.0"

// coreDNSTags are those that kubeadm has for the versions of Kubernetes that Drover ships. An upgrade leaves a cluster the CoreDNS that it has,
// under the tag of the version that it began with: machines of any version must know it by all of them.
func coreDNSTags() []string { return []string{"v1.13.1", "v1.14.2"} }

// proxyTags are those of the other versions that Drover ships. A cluster asks for one kube-proxy on all
// nodes: for a newer one on workers that stay behind, for an older one on the first machine of a new
// control plane, whose network would otherwise wait until the upgrade of the control plane is complete.
// A machine answers with its own, which matches its kubelet.
func proxyTags(kubernetes string) []string {
	return slices.DeleteFunc(version.Shipped(), func(release string) bool { return release == kubernetes })
}

// otherTags are further ones of a component's image.
func (b Builder) otherTags(component string) []string {
	switch component {
	case CoreDNS:
		return coreDNSTags()
	case proxy:
		return proxyTags(b.Kube.Version)
	default:
		return nil
	}
}

// sandbox is the image that every pod starts with.
func (s imageSet) sandbox() string { return s[Pause] }

// proxy is a component that runs on all nodes.
const proxy = "kube-proxy"

func components() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", proxy, "etcd", CoreDNS, Pause}
}

// writeImages writes one archive with all images. Those of Kubernetes share
// the layer with the multi-call binary.
func (b Builder) writeImages(path string, names imageSet) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), "layers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	layers, err := b.layers(dir)
	if err != nil {
		return err
	}
	all := maps.Clone(names)
	all[shellLayer], all[Network] = ToolsImage, NetworkImage
	images := map[name.Reference]v1.Image{}
	for _, component := range append(components(), shellLayer, Network) {
		img, err := layers.image(component)
		if err != nil {
			return fmt.Errorf("making image %q: %w", all[component], err)
		}
		tag, err := name.NewTag(all[component])
		if err != nil {
			return err
		}
		images[tag] = img
		for _, other := range b.otherTags(component) {
			images[tag.Tag(other)] = img
		}
	}
	return tarball.MultiRefWriteToFile(path, images)
}

// shellLayer is the layer, and the component, of ToolsImage.
const shellLayer = "shell"

// image puts the layers of a component together.
func (s layerSet) image(component string) (v1.Image, error) {
	layers, config := []v1.Layer{s["base"]}, v1.Config{
		Env: []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, WorkingDir: "/",
	}
	switch component {
	case Pause, CoreDNS:
		layers = append(layers, s[component])
		config.Entrypoint = []string{"/" + component}
		config.User = "65532:65532"
	case Network:
		// It calls nft, as kube-proxy does, and changes what only root may.
		layers = append(layers, s["tools"], s[Network])
		config.Entrypoint = []string{"/" + Network}
	case shellLayer:
		layers = append(layers, s[shellLayer])
		config.Cmd = []string{"/bin/bash"}
	case proxy:
		// Tools come last, so that the layer with the binary is unpacked once
		// for all.
		layers = append(layers, s["kube"], s["tools"])
	default:
		layers = append(layers, s["kube"])
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	return mutate.ConfigFile(img, file)
}
