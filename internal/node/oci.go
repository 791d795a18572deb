package node

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/node/host"
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

// sandbox is the image that every pod starts with.
func (s imageSet) sandbox() string { return s[Pause] }

func components() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", CoreDNS, Pause}
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
	all[shellLayer] = ToolsImage
	images := map[name.Reference]v1.Image{}
	for _, component := range append(components(), shellLayer) {
		img, err := layers.image(component)
		if err != nil {
			return fmt.Errorf("making image %q: %w", all[component], err)
		}
		tag, err := name.NewTag(all[component])
		if err != nil {
			return err
		}
		images[tag] = img
	}
	return tarball.MultiRefWriteToFile(path, images)
}

// shellLayer is the layer, and the component, of ToolsImage.
const shellLayer = "shell"

// layerSet has the layers by name.
type layerSet map[string]v1.Layer

func (b Builder) layers(dir string) (layerSet, error) {
	tools, err := host.Collect(proxyTools())
	if err != nil {
		return nil, err
	}
	shell, err := host.Collect(shellTools())
	if err != nil {
		return nil, err
	}
	content := map[string]func(w *tar.Writer) error{
		"base":     writeBase,
		"kube":     func(w *tar.Writer) error { return writeKube(w, b.Kube.Path) },
		"tools":    tools.WriteTar,
		shellLayer: shell.WriteTar,
		CoreDNS:    func(w *tar.Writer) error { return writeFile(w, "coredns", b.Programs.Path(CoreDNS)) },
		Pause:      func(w *tar.Writer) error { return writeFile(w, "pause", b.Programs.Path(Pause)) },
	}
	set := layerSet{}
	for layer, write := range content {
		if set[layer], err = newLayer(filepath.Join(dir, layer+".tar"), write); err != nil {
			return nil, fmt.Errorf("packing layer %q: %w", layer, err)
		}
	}
	return set, nil
}

// newLayer writes a layer that is not compressed: it never leaves this host,
// and machines share the unpacked files.
func newLayer(path string, write func(w *tar.Writer) error) (v1.Layer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(f)
	if err := errors.Join(write(w), w.Close(), f.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(path, tarball.WithCompression(compression.None))
}

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
	case shellLayer:
		layers = append(layers, s[shellLayer])
		config.Cmd = []string{"/bin/bash"}
	case "kube-proxy":
		layers = append(layers, s["tools"], s["kube"])
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

func writeBase(w *tar.Writer) error {
	for _, dir := range []string{"etc/", "tmp/", "var/", "usr/", "usr/bin/", "usr/sbin/", "usr/lib/", "usr/lib64/", "usr/local/", "usr/local/bin/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: mode, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := writeLink(w, dir, "usr/"+dir); err != nil {
			return err
		}
	}
	for _, file := range []string{"passwd", "group", "nsswitch.conf"} {
		data, err := skeleton.ReadFile("skel/etc/" + file)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "etc/" + file, Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func writeKube(w *tar.Writer, binary string) error {
	if err := writeFile(w, "usr/local/bin/kube", binary); err != nil {
		return err
	}
	for _, program := range kube.Programs() {
		if err := writeLink(w, "usr/local/bin/"+program, "kube"); err != nil {
			return err
		}
	}
	return nil
}

func writeLink(w *tar.Writer, path, target string) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: target, Mode: 0o777, ModTime: time.Unix(0, 0)})
}

func writeFile(w *tar.Writer, path, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o755, Size: info.Size(), ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
