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

// imageSet maps the last component of a repository to the full name that kubeadm uses.
type imageSet map[string]string

// imageNames runs kubeadm, so that names and tags are right for every version.
func imageNames(ctx context.Context, binary kube.Binary) (imageSet, error) {
	cmd := binary.Command(ctx, "kubeadm", "config", "images", "list", "--kubernetes-version", binary.Version)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing kubeadm's images: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return parseImageNames(string(out))
}

func parseImageNames(list string) (imageSet, error) {
	set := imageSet{}
	for image := range strings.FieldsSeq(list) {
		tag, err := name.NewTag(image)
		if err != nil {
			return nil, fmt.Errorf("kubeadm requires %q: %w", image, err)
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

// ToolsImage is an image with a shell, curl and socat on every machine, for experiments without a
// registry.
const ToolsImage = "drover.local/tools:v1"

// NetworkImage is the image of the agent that charts/cni runs on every node.
const NetworkImage = "drover-dev/cni:0.1.0"

// coreDNSTags are kubeadm's tags for the versions of Kubernetes that Drover ships. An upgrade keeps
// the CoreDNS of a cluster under the tag of its first version, so machines of any version must have
// it under all tags.
func coreDNSTags() []string { return []string{"v1.13.1", "v1.14.2"} }

// proxyTags are the tags of the other versions that Drover ships. A cluster uses one kube-proxy tag
// on all nodes: a newer one on workers that are not upgraded yet, an older one on the first machine
// of a new control plane, whose network would otherwise wait until the control plane is upgraded. A
// machine runs its own version, which matches its kubelet.
func proxyTags(kubernetes string) []string {
	return slices.DeleteFunc(version.Shipped(), func(release string) bool { return release == kubernetes })
}

// otherTags returns additional tags of a component's image.
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

// sandbox is the pause image of every pod.
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
			return fmt.Errorf("building image %q: %w", all[component], err)
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

// image combines the layers of a component.
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
		// It runs nft, as kube-proxy does, and requires root.
		layers = append(layers, s["tools"], s[Network])
		config.Entrypoint = []string{"/" + Network}
	case shellLayer:
		layers = append(layers, s[shellLayer])
		config.Cmd = []string{"/bin/bash"}
	case proxy:
		// Tools come last, so that the layer with the binary is unpacked only once.
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
