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

// DefaultProject is the name of the project that every home has.
const DefaultProject = "default"

// Home is the directory that holds all state of one metal.
type Home struct {
	Dir string
}

// DefaultHome is $DROVER_METAL_HOME, or .drover-metal in the user's home
// directory.
func DefaultHome() string { return userdir.Find("DROVER_METAL_HOME", ".drover-metal") }

// Endpoint tells other commands where the API is.
type Endpoint struct {
	URL string `json:"url"`
	// AdminToken is the file that holds the token for everything.
	AdminToken string `json:"adminToken"`
	Driver     string `json:"driver,omitempty"`
	// Project is the one that every home has, by its id.
	Project string `json:"project,omitempty"`
	// Machines is the URL at which machines reach the same API, if they can.
	Machines string `json:"machines,omitempty"`
	// Process is the one that serves, or served last.
	process.Process
}

// APIURL is what clients of the Packet API are given.
func (e Endpoint) APIURL() string { return e.URL + versionPrefix }

// MachinesAPIURL is what clients on machines are given. It is good on this host
// too.
func (e Endpoint) MachinesAPIURL() string {
	if e.Machines == "" {
		return ""
	}
	return e.Machines + versionPrefix
}

// ErrNoMetal means that no metal has ever run in a home.
var ErrNoMetal = errors.New("no metal service")

// EndpointFile is where the endpoint is written.
func (h Home) EndpointFile() string { return h.path("endpoint.json") }

// AdminTokenFile holds the token for everything.
func (h Home) AdminTokenFile() string { return h.path("tokens", "admin") }

// TokenFile holds a token of a project.
func (h Home) TokenFile(project string) string { return h.path("tokens", "project-"+project) }

// LogFile is where a metal in the background logs.
func (h Home) LogFile() string { return h.path("logs", "metal.log") }

func (h Home) storeFile() string { return h.path("store.db") }

// LocalDir is where the driver of local machines keeps everything.
func (h Home) LocalDir() string { return h.driverDir("local") }

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

// ReadEndpoint returns where the metal of this home is, or was last.
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

// WriteEndpoint records it.
func (h Home) WriteEndpoint(e Endpoint) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding endpoint: %w", err)
	}
	return atomicfile.Write(h.EndpointFile(), append(data, '\n'), 0o600)
}

// CheckDriver refuses another driver than the one that the home's devices were
// made with: it would make them anew as machines of its own kind.
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

// DriverError means that a home belongs to machines of another kind.
type DriverError struct{ Home, Has, Wanted string }

func (e *DriverError) Error() string {
	return fmt.Sprintf("home %q has machines of driver %q, not %q: use that driver, set $DROVER_METAL_HOME to another home, or remove this one with `drover metal purge`",
		e.Home, e.Has, e.Wanted)
}

// AdminToken reads the token for everything.
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

// ensureTokens makes the admin token and the default project at first start,
// and finishes what a first start that was cut short left undone.
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

// ensureToken makes a token that is both in the file and in the store.
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
