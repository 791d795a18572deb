package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/web"
)

// Limits of connections.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 3 * time.Second
)

// Server serves the page for one kubeconfig on loopback.
type Server struct {
	view     *View
	sessions *sessions
	listener net.Listener
	token    string
}

// New returns a server of the page on a listener, which must be on loopback.
func New(plane *inspect.Plane, listener net.Listener) (*Server, error) {
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, errors.New("the page is served on loopback only, because it has your credentials")
	}
	s := &Server{view: NewView(plane), listener: listener}
	s.sessions, s.token = newSessions(port)
	return s, nil
}

// URL is the address that opens the page, once. Browsers don't send its token to any server.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/#token=" + s.token }

// Serve serves until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go s.view.Run(watching)
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return watching },
	}
	go func() {
		<-watching.Done()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server.Shutdown(stopping) != nil {
			_ = server.Close()
		}
	}()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler returns the routes. All of them but the files and the session require a session.
func (s *Server) handler() http.Handler {
	api := http.NewServeMux()
	api.HandleFunc("GET /api/stream", s.view.stream)
	api.HandleFunc("GET /api/plane", s.view.getPlane)
	api.HandleFunc("GET /api/server", s.view.getServer)
	api.HandleFunc("GET /api/addons", s.view.getAddOns)
	api.HandleFunc("GET /api/addons/{namespace}/{name}", s.view.getAddOn)
	api.HandleFunc("POST /api/addons/{namespace}/{name}/plan", s.view.planAddOn)
	api.HandleFunc("POST /api/addons/{namespace}/{name}/do", s.view.doAddOn)
	api.HandleFunc("GET /api/git", s.view.getGit)
	api.HandleFunc("GET /api/machines", s.view.getMachines)
	api.HandleFunc("GET /api/clusters/{kind}/{namespace}/{name}", s.view.getCluster)
	api.HandleFunc("GET /api/clusters/{kind}/{namespace}/{name}/events", s.view.getEvents)
	api.HandleFunc("GET /api/clusters/{kind}/{namespace}/{name}/audit", s.view.getAudit)
	api.HandleFunc("GET /api/clusters/{kind}/{namespace}/{name}/kubeconfig", s.view.getKubeconfig)
	api.HandleFunc("POST /api/clusters/{kind}/{namespace}/{name}/plan", s.view.planAction)
	api.HandleFunc("POST /api/clusters/{kind}/{namespace}/{name}/do", s.view.doAction)
	mux := http.NewServeMux()
	mux.Handle("/api/", s.sessions.required(api))
	mux.HandleFunc("POST /api/session", s.sessions.signIn)
	mux.HandleFunc("/", serveFiles)
	return guard(loopbackHosts(s.listener.Addr()), mux)
}

// serveFiles serves the built page. Addresses within the page, which have no extension, return it.
func serveFiles(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		fail(w, http.StatusMethodNotAllowed, "files can only be read", "")
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	file, found := web.File(name)
	if !found && !strings.Contains(name, ".") {
		file, found = web.File("index.html")
	}
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", file.Type)
	w.Header().Set("ETag", file.Tag)
	w.Header().Set("Cache-Control", "no-cache")
	if r.Header.Get("If-None-Match") == file.Tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(file.Data) // the browser may be gone
}
