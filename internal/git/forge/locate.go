package forge

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/drover-dev/drover/internal/git"
)

// Location is where a repository is, as an administrator describes it.
type Location struct {
	// URL is that of the repository.
	URL string
	// Kind may be empty if the host tells it.
	Kind Kind
	// BaseURL is the root of the API, if it isn't at the usual path of the host.
	BaseURL string
}

// public are the forges that are known by their host.
var public = map[string]Kind{"github.com": GitHub, "gitlab.com": GitLab, "codeberg.org": Gitea, "gitea.com": Gitea}

// Locate returns the forge of a repository without credentials. It reports false if the repository
// is on none: Git servers without an API have no commit statuses.
func Locate(l Location) (Options, bool, error) {
	canonical, err := git.Canonical(l.URL)
	if err != nil {
		return Options{}, false, fmt.Errorf("finding the forge: %w", err)
	}
	u, err := url.Parse(canonical)
	if err != nil {
		return Options{}, false, fmt.Errorf("finding the forge: the URL of the repository is malformed")
	}
	kind := l.Kind
	if kind == "" {
		kind = public[u.Hostname()]
	}
	if kind == "" {
		return Options{}, false, nil
	}
	base := l.BaseURL
	if base == "" {
		base = usualAPI(kind, u)
	}
	return Options{Kind: kind, BaseURL: base, Repository: strings.TrimPrefix(strings.TrimPrefix(u.Path, "/~"), "/")}, true, nil
}

// usualAPI returns where the API of a forge is. That of a repository over SSH is on the same host,
// at the usual port.
func usualAPI(kind Kind, repository *url.URL) string {
	host := repository.Host
	if repository.Scheme == "ssh" {
		host = repository.Hostname()
	}
	switch {
	case kind == GitHub && host == "github.com":
		return "https://api.github.com"
	case kind == GitHub:
		return "https://" + host + "/api/v3"
	case kind == GitLab:
		return "https://" + host + "/api/v4"
	default:
		return "https://" + host + "/api/v1"
	}
}
