package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/node/host"
)

const (
	// imagePrefix is the prefix of cache entries with images.
	imagePrefix = "image-"

	rootDir  = "root"
	storeDir = "containerd"
	// format is part of the key. Change it when the code below produces another result from the
	// same inputs.
	format = "13"
)

// Image is the boot image of machines. They share it, so it must never change.
type Image struct {
	Dir        string
	Kubernetes string
}

// Root is the lower layer of a machine's root file system.
func (i Image) Root() string { return filepath.Join(i.Dir, rootDir) }

// Builder builds images.
type Builder struct {
	Cache    Cache
	Programs Programs
	Kube     kube.Binary
	Log      *slog.Logger
}

// NewBuilder finds all inputs of an image for that Kubernetes version. Its error explains how to
// provide missing ones.
func NewBuilder(version string, log *slog.Logger) (Builder, error) {
	c, err := DefaultCache()
	if err != nil {
		return Builder{}, err
	}
	programs, err := FindPrograms("", c)
	if err != nil {
		return Builder{}, err
	}
	binary, err := kube.Find(kube.FindOptions{Version: version})
	if err != nil {
		return Builder{}, err
	}
	return Builder{Cache: c, Programs: programs, Kube: binary, Log: log}, nil
}

// Image returns the image and builds it if it is not cached, which takes some seconds.
func (b Builder) Image(ctx context.Context) (Image, error) {
	tools, err := host.Collect(machineTools())
	if err != nil {
		return Image{}, fmt.Errorf("collecting tools for machines: %w", err)
	}
	key, err := b.key(tools)
	if err != nil {
		return Image{}, fmt.Errorf("naming the machine image: %w", err)
	}
	start := time.Now()
	dir, err := b.Cache.Make(ctx, imagePrefix+b.Kube.Version+"-"+key, func(ctx context.Context, dir string) error {
		b.Log.Info("building a machine image", "kubernetes", b.Kube.Version)
		if err := b.make(ctx, dir, tools); err != nil {
			return err
		}
		b.Log.Info("built a machine image", "kubernetes", b.Kube.Version, "took", time.Since(start).Round(time.Millisecond))
		b.prune()
		return nil
	})
	if err != nil {
		return Image{}, fmt.Errorf("building the machine image for Kubernetes %s: %w", b.Kube.Version, err)
	}
	return Image{Dir: dir, Kubernetes: b.Kube.Version}, nil
}

// Archive writes an archive with all container images of the Kubernetes version, for a machine that
// gets that version later.
func (b Builder) Archive(ctx context.Context, path string) error {
	names, err := imageNames(ctx, b.Kube)
	if err != nil {
		return err
	}
	return b.writeImages(path, names)
}

// prune removes old entries. A failure is only logged.
func (b Builder) prune() {
	err := errors.Join(b.Cache.prune(imagePrefix, keepImages), b.Cache.prune(programsPrefix, keepPrograms), b.Cache.prune(partPrefix, keepParts))
	if err != nil {
		b.Log.Warn("removing old machine images failed", "error", err)
	}
}

func (b Builder) make(ctx context.Context, dir string, tools host.Files) error {
	names, err := imageNames(ctx, b.Kube)
	if err != nil {
		return err
	}
	root := filepath.Join(dir, rootDir)
	if err := b.makeRoot(root, tools, names); err != nil {
		return fmt.Errorf("assembling the root file system: %w", err)
	}
	archive := filepath.Join(dir, "images.tar")
	if err := b.writeImages(archive, names); err != nil {
		return fmt.Errorf("packing container images: %w", err)
	}
	defer os.Remove(archive)
	if err := b.fillStore(ctx, filepath.Join(dir, storeDir), archive); err != nil {
		return fmt.Errorf("filling the containerd store: %w", err)
	}
	if err := b.shareFiles(filepath.Join(dir, storeDir)); err != nil {
		return fmt.Errorf("sharing programs with the containerd store: %w", err)
	}
	return nil
}

// key identifies everything that the image depends on.
func (b Builder) key(tools host.Files) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, format, tools.Key())
	for _, name := range Names() {
		if err := hashStat(h, b.Programs.Path(name)); err != nil {
			return "", err
		}
	}
	if err := hashStat(h, b.Kube.Path); err != nil {
		return "", err
	}
	err := fs.WalkDir(skeleton, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := skeleton.ReadFile(path)
		fmt.Fprintf(h, "%q %q\n", path, data)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

func hashStat(h interface{ Write([]byte) (int, error) }, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(h, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	return err
}

// linkOrCopy creates a hard link, or a copy where the file system does not support links.
func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return host.CopyFile(from, to, info.Mode())
}
