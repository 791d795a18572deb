package addon

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

// packages configures the cache of charts, which is in the user's cache directory.
type packages struct{ plainHTTP bool }

func (p *packages) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.plainHTTP, "allow-plain-http", false, "accept http:// chart repositories, and registries without TLS")
}

func (p *packages) options() (artifact.Options, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	o := artifact.Options{Dir: filepath.Join(dir, "drover", "charts"), PlainHTTP: p.plainHTTP}
	// Trust the registry of the embedded plane, like the manager does.
	if r, err := plane.ReadRegistry(plane.Home{Dir: plane.DefaultHome()}); err == nil {
		o.Trust, err = artifact.TrustRegistry(r.URL, r.CAFile)
		return o, err
	}
	return o, nil
}

// clusters opens connections to the workload clusters of a plane.
func (p *packages) clusters(of *inspect.Plane) (*inspect.Workloads, error) {
	options, err := p.options()
	if err != nil {
		return nil, err
	}
	return of.Workloads(options)
}
