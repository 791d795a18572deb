package spec

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// MissingError lists the objects that a Cluster references and that do not exist.
type MissingError struct {
	Cluster   types.NamespacedName
	Namespace string
	// Objects are kinds and names, such as "PacketMachineConfig/workers".
	Objects []string
}

// Error lists all of them.
func (e *MissingError) Error() string {
	return fmt.Sprintf("cluster %q references objects that do not exist in namespace %q: %s", e.Cluster.Name, e.Namespace, strings.Join(e.Objects, ", "))
}

// Gather reads the objects that a Cluster references and skips unsupported kinds. Together with a
// MissingError, it returns the objects that exist; with any other error it returns nil.
func Gather(ctx context.Context, reader client.Reader, c *anywherev1.Cluster) (*Config, error) {
	g := &gathering{reader: reader, config: &Config{Cluster: c}}
	for _, ref := range References(c) {
		if err := g.get(ctx, ref); err != nil {
			return nil, err
		}
	}
	if len(g.missing) > 0 {
		return g.config, &MissingError{Cluster: client.ObjectKeyFromObject(c), Namespace: c.Namespace, Objects: g.missing}
	}
	return g.config, nil
}

type gathering struct {
	reader  client.Reader
	config  *Config
	missing []string
}

func (g *gathering) get(ctx context.Context, ref anywherev1.Ref) error {
	object := newObject(ref.Kind)
	if object == nil || ref.Name == "" {
		return nil
	}
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: g.config.Cluster.Namespace, Name: ref.Name}, object)
	if apierrors.IsNotFound(err) {
		g.missing = append(g.missing, ref.Kind+"/"+ref.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %q: %w", ref.Kind, ref.Name, err)
	}
	g.config.add(object)
	return nil
}
