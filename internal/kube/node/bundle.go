package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/kube/node/host"
)

// bundlePrefix is the prefix of cache entries with the images of servers.
const bundlePrefix = "bundle-"

// ServerDir is where servers of their own have the programs of a node.
const ServerDir = "/opt/drover"

// ServerKubeProgram is the path of their multi-call Kubernetes binary.
const ServerKubeProgram = ServerDir + "/bin/kube"

// Bundle is what a server with an operating system needs to become a node. Nothing of it is
// downloaded by the server.
type Bundle struct {
	Kubernetes string
	// Files maps paths on the server to programs on this host.
	Files map[string]string
	// Links are names for these programs.
	Links map[string]string
	// Images is an archive of the container images that kubeadm requires, Sandbox the one of every
	// Pod.
	Images, Sandbox string
}

// Bundle returns the bundle and packs its images if they are not cached, which takes some seconds.
func (b Builder) Bundle(ctx context.Context) (Bundle, error) {
	key, err := b.key(host.Files{})
	if err != nil {
		return Bundle{}, fmt.Errorf("naming the images of servers: %w", err)
	}
	names, err := imageNames(ctx, b.Kube)
	if err != nil {
		return Bundle{}, err
	}
	dir, err := b.Cache.Make(ctx, bundlePrefix+b.Kube.Version+"-"+key, func(_ context.Context, dir string) error {
		defer b.pruneBundles()
		return b.writeImages(filepath.Join(dir, "images.tar"), names)
	})
	if err != nil {
		return Bundle{}, fmt.Errorf("packing the images of servers for Kubernetes %s: %w", b.Kube.Version, err)
	}
	out := Bundle{Kubernetes: b.Kube.Version, Images: filepath.Join(dir, "images.tar"), Sandbox: names.sandbox(), Files: map[string]string{ServerKubeProgram: b.Kube.Path}, Links: map[string]string{}}
	for _, name := range []string{Containerd, Shim, Ctr, Runc} {
		out.Files[filepath.Join(ServerDir, "bin", name)] = b.Programs.Path(name)
	}
	for _, name := range CNIPlugins() {
		out.Files[filepath.Join("/opt/cni/bin", name)] = b.Programs.Path(name)
	}
	for _, program := range []string{"kubelet", "kubectl"} {
		out.Links[filepath.Join("/usr/local/bin", program)] = ServerKubeProgram
	}
	for _, name := range []string{Ctr, Shim, Runc} { // containerd finds them in its search path.
		out.Links[filepath.Join("/usr/local/bin", name)] = filepath.Join(ServerDir, "bin", name)
	}
	return out, exists(out.Files)
}

func exists(files map[string]string) error {
	for _, from := range files {
		if _, err := os.Stat(from); err != nil {
			return fmt.Errorf("a program of servers is missing: %w", err)
		}
	}
	return nil
}

// pruneBundles removes old bundles. They are not needed once they are on servers.
func (b Builder) pruneBundles() {
	if err := b.Cache.prune(bundlePrefix, keepImages); err != nil {
		b.Log.Warn("removing old images of servers failed", "error", err)
	}
}
