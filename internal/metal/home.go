package metal

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/base/userdir"
	"github.com/drover-dev/drover/internal/metal/store"
)

// DefaultProject is the name of the project that exists in every home.
const DefaultProject = "default"

// Home is the directory that holds all state of one metal service.
type Home struct {
	Dir string
}

// DefaultHome is $DROVER_METAL_HOME, or .drover-metal in the user's home
// directory.
func DefaultHome() string { return userdir.Find("DROVER_METAL_HOME", ".drover-metal") }

// Endpoint describes where the API is, for other commands.
type Endpoint struct {
	URL string `json:"url"`
	// AdminToken is the path of the file with the administrator's token.
	AdminToken string `json:"adminToken"`
	Driver     string `json:"driver,omitempty"`
	// Project is the ID of the default project.
	Project string `json:"project,omitempty"`
	// Machines is the URL of the API as seen from machines, if they can reach it.
	Machines string `json:"machines,omitempty"`
	// CA is the path of the CA of URLs with TLS.
	CA string `json:"ca,omitempty"`
	// Process is the process that serves, or served last.
	process.Process
}

// APIURL is the URL for clients of the Packet API.
func (e Endpoint) APIURL() string { return e.URL + versionPrefix }

// SecureURL is the URL that clients on this host send tokens to: with TLS if there is one. Without,
// any user of the host could serve at the port of a service that has stopped.
func (e Endpoint) SecureURL() string {
	if strings.HasPrefix(e.Machines, "https://") {
		return e.Machines
	}
	return e.URL
}

// SecureAPIURL is the same for clients of the Packet API.
func (e Endpoint) SecureAPIURL() string { return e.SecureURL() + versionPrefix }

// MachinesAPIURL is the URL for clients on machines. It works on this host, too.
func (e Endpoint) MachinesAPIURL() string {
	if e.Machines == "" {
		return ""
	}
	return e.Machines + versionPrefix
}

// Outdated reports whether the service was started by a version that served machines without TLS.
func (e Endpoint) Outdated() bool { return strings.HasPrefix(e.Machines, "http://") }

// ErrNoMetal means that no metal service has run in a home.
var ErrNoMetal = errors.New("no metal service")

// EndpointFile returns the path of the endpoint file.
func (h Home) EndpointFile() string { return h.path("endpoint.json") }

// AdminTokenFile returns the path of the administrator's token.
func (h Home) AdminTokenFile() string { return h.path("tokens", "admin") }

// TokenFile returns the path of a project's token.
func (h Home) TokenFile(project string) string { return h.path("tokens", "project-"+project) }

// LogFile returns the path of the log of a background service.
func (h Home) LogFile() string { return h.path("logs", "metal.log") }

func (h Home) storeFile() string { return h.path("store.db") }

// sealFile is the key that encrypts the secrets of servers.
func (h Home) sealFile() string { return h.path("inventory.key") }

// LocalDir returns the directory of the driver for local machines.
func (h Home) LocalDir() string { return h.driverDir("local") }

// ServerDir returns the directory of the driver for servers.
func (h Home) ServerDir() string { return h.driverDir("server") }

func (h Home) driverDir(name string) string { return h.path("driver-" + strings.ToLower(name)) }

func (h Home) path(elem ...string) string {
	return filepath.Join(append([]string{h.Dir}, elem...)...)
}

func (h Home) prepare() error {
	for _, dir := range []string{h.Dir, h.path("tokens")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating home %q: %w: fix the permissions, or choose another --home", h.Dir, err)
		}
	}
	return os.Chmod(h.Dir, 0o700)
}

// ReadEndpoint returns the current or last endpoint of the metal service of this home.
func (h Home) ReadEndpoint() (Endpoint, error) {
	var e Endpoint
	data, err := os.ReadFile(h.EndpointFile())
	if errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf("%w in home %q: start it with `drover up` or `drover metal serve`", ErrNoMetal, h.Dir)
	}
	if err != nil {
		return e, fmt.Errorf("reading endpoint: %w", err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("endpoint file %q is damaged: %w", h.EndpointFile(), err)
	}
	return e, nil
}

// WriteEndpoint records the endpoint.
func (h Home) WriteEndpoint(e Endpoint) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding endpoint: %w", err)
	}
	return atomicfile.Write(h.EndpointFile(), append(data, '\n'), 0o600)
}

// CheckDriver rejects a driver other than the one that provisioned the home's devices, since it
// would provision all of them again.
func (h Home) CheckDriver(name string) error {
	e, err := h.ReadEndpoint()
	if errors.Is(err, ErrNoMetal) {
		return nil
	}
	if err != nil {
		return err
	}
	if e.Driver != "" && e.Driver != name {
		return &DriverError{Home: h.Dir, Has: e.Driver, Wanted: name}
	}
	return nil
}

// DriverError means that a home has machines of another driver.
type DriverError struct{ Home, Has, Wanted string }

func (e *DriverError) Error() string {
	return fmt.Sprintf("home %q has machines of driver %q, not %q: use that driver, set $DROVER_METAL_HOME to another home, or remove this one with `drover metal purge`",
		e.Home, e.Has, e.Wanted)
}

// AdminToken reads the administrator's token.
func (h Home) AdminToken() (string, error) { return readToken(h.AdminTokenFile()) }

// Token reads the token of a project.
func (h Home) Token(project string) (string, error) { return readToken(h.TokenFile(project)) }

func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// ensureTokens creates the administrator's token and the default project at first start, and
// completes an interrupted first start.
func (s *Server) ensureTokens() error {
	if err := s.ensureToken(s.home.AdminTokenFile(), ""); err != nil {
		return err
	}
	p, err := s.ensureProject(DefaultProject)
	if err != nil {
		return err
	}
	return s.ensureToken(s.home.TokenFile(p.ID), p.ID)
}

// ensureToken creates a token that is both in the file and in the store.
func (s *Server) ensureToken(file, project string) error {
	token, err := readToken(file)
	if errors.Is(err, fs.ErrNotExist) {
		token = newToken()
		err = atomicfile.Write(file, []byte(token+"\n"), 0o600)
	}
	if err != nil {
		return err
	}
	return s.store.Update(func(tx *store.Tx) error { return s.putToken(tx, token, project) })
}

func (s *Server) putToken(tx *store.Tx, token, project string) error {
	return tx.Tokens().Put(&store.Token{Hash: hashToken(token), Project: project, Created: s.now()})
}

func (s *Server) ensureProject(name string) (*store.Project, error) {
	var p *store.Project
	err := s.store.Update(func(tx *store.Tx) error {
		found, err := tx.Projects().All(func(p *store.Project) bool { return p.Name == name })
		if err != nil {
			return err
		}
		if len(found) > 0 {
			p = found[0]
			return nil
		}
		p = &store.Project{ID: uuid.NewString(), Name: name, Created: s.now(), Updated: s.now()}
		return tx.Projects().Put(p)
	})
	return p, err
}

func newToken() string {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw) // Never fails: the runtime ends the program instead.
	return hex.EncodeToString(raw)
}
