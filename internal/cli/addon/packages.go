package addon

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/operate/inspect/addons"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

// packages say where charts are kept: where the user's other caches are.
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
	// The plane's own registry needs no settings, as for the manager. A plane elsewhere has none here.
	if r, err := plane.ReadRegistry(plane.Home{Dir: plane.DefaultHome()}); err == nil {
		o.Trust, err = artifact.TrustRegistry(r.URL, r.CAFile)
		return o, err
	}
	return o, nil
}

// clusters opens the way to the plane's workload clusters, and to packages.
func (p *packages) clusters(of *view.Plane) (*view.Clusters, error) {
	options, err := p.options()
	if err != nil {
		return nil, err
	}
	return of.Clusters(options)
}
