package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// archive writes files into a reproducible tar archive. The first error sticks.
type archive struct {
	tw  *tar.Writer
	err error
}

// WriteArchive writes an OCI image layout as one file. It includes a docker manifest for daemons
// that don't support OCI layouts.
func WriteArchive(path string, tag name.Tag, img v1.Image) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = writeLayout(f, tag, img)
	return errors.Join(err, f.Close())
}

func writeLayout(w io.Writer, tag name.Tag, img v1.Image) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	a := &archive{tw: tar.NewWriter(w)}
	a.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), nil)
	docker := dockerManifest{RepoTags: []string{ShortName(tag)}}
	for _, layer := range layers {
		docker.Layers = append(docker.Layers, a.addLayer(layer))
	}
	docker.Config = a.addBlob(img.ConfigName, img.RawConfigFile)
	a.addBlob(img.Digest, img.RawManifest)
	a.addJSON("index.json", index(tag, img))
	a.addJSON("manifest.json", func() (any, error) { return []dockerManifest{docker}, nil })
	return errors.Join(a.err, a.tw.Close())
}

// dockerManifest is what "docker load" reads.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func index(tag name.Tag, img v1.Image) func() (any, error) {
	return func() (any, error) {
		digest, err := img.Digest()
		if err != nil {
			return nil, err
		}
		size, err := img.Size()
		return v1.IndexManifest{
			SchemaVersion: 2,
			MediaType:     types.OCIImageIndex,
			Manifests: []v1.Descriptor{{
				MediaType: types.OCIManifestSchema1, Digest: digest, Size: size,
				Annotations: map[string]string{
					"io.containerd.image.name":          tag.Name(),
					"org.opencontainers.image.ref.name": tag.TagStr(),
				},
			}},
		}, err
	}
}

// ShortName returns the name without the default registry.
func ShortName(tag name.Tag) string {
	if tag.RegistryStr() == name.DefaultRegistry {
		return tag.RepositoryStr() + ":" + tag.TagStr()
	}
	return tag.Name()
}

func (a *archive) addLayer(layer v1.Layer) (file string) {
	return a.addBlob(layer.Digest, func() ([]byte, error) {
		r, err := layer.Compressed()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	})
}

func (a *archive) addBlob(digest func() (v1.Hash, error), content func() ([]byte, error)) (file string) {
	hash, err := digest()
	a.err = errors.Join(a.err, err)
	data, err := content()
	file = "blobs/" + hash.Algorithm + "/" + hash.Hex
	a.add(file, data, err)
	return file
}

func (a *archive) addJSON(file string, value func() (any, error)) {
	v, err := value()
	if err != nil {
		a.add(file, nil, err)
		return
	}
	data, err := json.Marshal(v)
	a.add(file, data, err)
}

func (a *archive) add(file string, data []byte, err error) {
	if a.err != nil {
		return
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: file, Mode: 0o644, Size: int64(len(data)), ModTime: epoch().Time, Format: tar.FormatUSTAR,
	}
	if err == nil {
		err = a.tw.WriteHeader(header)
	}
	if err == nil {
		_, err = a.tw.Write(data)
	}
	if err != nil {
		a.err = fmt.Errorf("adding %q: %w", file, err)
	}
}
