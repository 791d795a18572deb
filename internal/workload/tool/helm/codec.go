package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// The format of Helm's Secrets. Helm's own package is not used: it depends on a SQL database and
// supports no contexts.
const (
	secretType = "helm.sh/release.v1"
	secretKey  = "release"
	// nearlyFull is close to the size limit of a Secret.
	nearlyFull = 900 << 10
	// tooLarge exceeds any release: a Secret holds 1 MiB, and JSON compresses by less than this
	// factor.
	tooLarge = 64 << 20
)

// encode returns the Secret of a revision. changed is the label of the timestamp, which differs
// between new and existing Secrets.
func encode(rec *record, changed string) (*corev1.Secret, error) {
	data, err := pack(rec.Release)
	if err != nil {
		return nil, fmt.Errorf("encoding revision %d of release %q: %w", rec.Version, rec.Name, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: key(rec.Name, rec.Version), Namespace: rec.Namespace, ResourceVersion: rec.version},
		Type:       secretType,
		Data:       map[string][]byte{secretKey: data},
	}
	secret.Labels = map[string]string{}
	for label, value := range rec.Labels {
		secret.Labels[label] = value
	}
	secret.Labels[ownerLabel], secret.Labels[nameLabel] = ownerHelm, rec.Name
	secret.Labels[statusLabel], secret.Labels[versionLabel] = rec.status(), strconv.Itoa(rec.Version)
	secret.Labels[changed] = strconv.FormatInt(time.Now().Unix(), 10)
	if rec.chart != "" {
		secret.Annotations = map[string]string{chartAnnotation: rec.chart}
	}
	return secret, nil
}

// decode reads the Secret of a revision.
func decode(secret *corev1.Secret) (*record, error) {
	release, err := unpack(secret.Data[secretKey])
	if err != nil {
		return nil, err
	}
	release.Labels = map[string]string{}
	for label, value := range secret.Labels {
		if !systemLabels[label] {
			release.Labels[label] = value
		}
	}
	return &record{Release: release, version: secret.ResourceVersion, chart: secret.Annotations[chartAnnotation]}, nil
}

// pack compresses harder if a release would not fit into a Secret.
func pack(release *releasev1.Release) ([]byte, error) {
	out, err := compress(release, gzip.DefaultCompression)
	if err == nil && len(out) > nearlyFull {
		return compress(release, gzip.BestCompression)
	}
	return out, err
}

// zippers are pooled by level: the tables of one take most of a megabyte.
var zippers = map[int]*sync.Pool{gzip.DefaultCompression: {}, gzip.BestCompression: {}}

func zipperTo(out io.Writer, level int) (*gzip.Writer, error) {
	if zipper, ok := zippers[level].Get().(*gzip.Writer); ok {
		zipper.Reset(out)
		return zipper, nil
	}
	return gzip.NewWriterLevel(out, level)
}

func compress(release *releasev1.Release, level int) ([]byte, error) {
	var out bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &out)
	zipper, err := zipperTo(encoder, level)
	if err != nil {
		return nil, err
	}
	defer zippers[level].Put(zipper)
	if err := json.NewEncoder(zipper).Encode(release); err != nil {
		return nil, err
	}
	if err := errors.Join(zipper.Close(), encoder.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpack also reads releases from before Helm compressed them.
func unpack(data []byte) (*releasev1.Release, error) {
	plain := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(plain, data)
	if err != nil {
		return nil, err
	}
	var in io.Reader = bytes.NewReader(plain[:n])
	if bytes.HasPrefix(plain, []byte{0x1f, 0x8b}) {
		if in, err = gzip.NewReader(in); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(in, tooLarge))
	if err == nil {
		err = safeyaml.CheckValues(text)
	}
	if err != nil {
		return nil, err
	}
	release := &releasev1.Release{}
	if err := json.Unmarshal(text, release); err != nil {
		return nil, err
	}
	if release.Info == nil {
		return nil, errors.New("no status")
	}
	return release, nil
}
