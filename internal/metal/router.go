package metal

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"

	"github.com/drover-dev/drover/internal/metal/request"
)

// versionPrefix is the prefix of later versions of the original API; the first version had none.
// Both work.
const versionPrefix = "/metal/v1"

// reply is the response of a handler; a nil body is empty.
type reply struct {
	status int
	body   any
	// stream, if set, replaces the body.
	stream http.HandlerFunc
}

func ok(body any) (*reply, error)      { return &reply{status: http.StatusOK, body: body}, nil }
func created(body any) (*reply, error) { return &reply{status: http.StatusCreated, body: body}, nil }

func accepted() (*reply, error)  { return &reply{status: http.StatusAccepted, body: struct{}{}}, nil }
func noContent() (*reply, error) { return &reply{status: http.StatusNoContent}, nil }

// routes is the whole API, by method and path.
func routes() map[string]func(*call) (*reply, error) {
	all := packetRoutes()
	maps.Copy(all, extensions())
	return all
}

// packetRoutes are those of the Packet API.
func packetRoutes() map[string]func(*call) (*reply, error) {
	return map[string]func(*call) (*reply, error){
		"GET /projects":              listProjects,
		"POST /projects":             createProject,
		"GET /projects/{project}":    getProject,
		"PUT /projects/{project}":    updateProject,
		"PATCH /projects/{project}":  updateProject,
		"DELETE /projects/{project}": deleteProject,

		"GET /projects/{project}/devices":  listDevices,
		"POST /projects/{project}/devices": createDevice,
		"GET /devices/{device}":            getDevice,
		"PUT /devices/{device}":            updateDevice,
		"PATCH /devices/{device}":          updateDevice,
		"DELETE /devices/{device}":         deleteDevice,
		"POST /devices/{device}/actions":   actOnDevice,
		"GET /devices/{device}/events":     listEvents,
		"GET /projects/{project}/events":   listProjectEvents,
		"GET /events":                      listAllEvents,
		"GET /events/{event}":              getEvent,
		"GET /ports/{port}":                getPort,

		"GET /user":                                  getCurrentUser,
		"GET /users":                                 listUsers,
		"GET /users/{user}":                          getUser,
		"GET /emails/{email}":                        getEmail,
		"GET /organizations":                         listOrganizations,
		"GET /organizations/{organization}":          ofOrganization(getOrganization),
		"GET /organizations/{organization}/projects": ofOrganization(listProjects),
		"GET /organizations/{organization}/plans":    ofOrganization(listPlans),
		"GET /organizations/{organization}/events":   ofOrganization(listAllEvents),

		"GET /projects/{project}/ips":  listBlocks,
		"POST /projects/{project}/ips": reserveBlock,
		"GET /devices/{device}/ips":    listAssignments,
		"POST /devices/{device}/ips":   assignAddress,
		"GET /ips/{ip}":                getIP,
		"PATCH /ips/{ip}":              updateBlock,
		"PUT /ips/{ip}":                updateBlock,
		"DELETE /ips/{ip}":             deleteIP,
		"GET /ips/{ip}/available":      availableAddresses,

		"GET /projects/{project}/bgp-config":   getBGPConfig,
		"POST /projects/{project}/bgp-configs": enableBGP,
		"GET /projects/{project}/bgp/sessions": listProjectSessions,
		"GET /devices/{device}/bgp/sessions":   listSessions,
		"POST /devices/{device}/bgp/sessions":  createSession,
		"GET /devices/{device}/bgp/neighbors":  listNeighbors,
		"GET /bgp/sessions/{session}":          getSession,
		"PUT /bgp/sessions/{session}":          updateSession,
		"DELETE /bgp/sessions/{session}":       deleteSession,

		"GET /ssh-keys":                     listSSHKeys,
		"POST /ssh-keys":                    createSSHKey,
		"GET /projects/{project}/ssh-keys":  listProjectSSHKeys,
		"POST /projects/{project}/ssh-keys": createProjectSSHKey,
		"GET /ssh-keys/{key}":               getSSHKey,
		"PUT /ssh-keys/{key}":               updateSSHKey,
		"PATCH /ssh-keys/{key}":             updateSSHKey,
		"DELETE /ssh-keys/{key}":            deleteSSHKey,

		"GET /projects/{project}/hardware-reservations": listHardware,
		"GET /hardware-reservations/{reservation}":      getHardware,

		"GET /locations/metros":              listMetros,
		"GET /locations/metros/{metro}":      getMetro,
		"GET /facilities":                    listFacilities,
		"GET /facilities/{facility}":         getFacility,
		"GET /projects/{project}/facilities": ofProject(listFacilities),
		"GET /plans":                         listPlans,
		"GET /projects/{project}/plans":      ofProject(listPlans),
		"GET /operating-systems":             listOperatingSystems,
		"GET /capacity":                      facilityCapacity,
		"POST /capacity":                     checkCapacity,
		"GET /capacity/metros":               metroCapacity,
		"POST /capacity/metros":              checkCapacity,
		"POST /userdata/validate":            validateUserdata,
	}
}

// extensions are Drover's own routes.
func extensions() map[string]func(*call) (*reply, error) {
	return map[string]func(*call) (*reply, error){
		"GET /drover/v1/devices":                                        listAllDevices,
		"GET /drover/v1/devices/{device}":                               getMachine,
		"GET /drover/v1/devices/{device}/console":                       getConsole,
		"POST /drover/v1/devices/{device}/exec":                         execute,
		"POST /drover/v1/projects/{project}/tokens":                     createToken,
		"POST /drover/v1/projects/{project}/hardware-reservations":      createHardware,
		"DELETE /drover/v1/hardware-reservations/{reservation}":         deleteHardware,
		"GET /drover/v1/projects/{project}/faults":                      listFaults,
		"POST /drover/v1/projects/{project}/faults":                     addFault,
		"DELETE /drover/v1/projects/{project}/faults":                   removeFaults,
		"DELETE /drover/v1/projects/{project}/faults/{fault}":           removeFaults,
		"GET /drover/v1/capacity":                                       reportCapacity,
		"PUT /drover/v1/capacity":                                       changeCapacity,
		"GET /drover/v1/projects/{project}/quota":                       getQuota,
		"PUT /drover/v1/projects/{project}/quota":                       changeQuota,
		"GET /drover/v1/servers":                                        ofInventory(listServers),
		"POST /drover/v1/servers":                                       ofInventory(importServers),
		"GET /drover/v1/servers/{server}":                               ofInventory(getServer),
		"PUT /drover/v1/servers/{server}":                               ofInventory(editServer),
		"DELETE /drover/v1/servers/{server}":                            ofInventory(removeServer),
		"POST /drover/v1/servers/{server}/check":                        ofInventory(checkServer),
		"POST /drover/v1/servers/{server}/reset":                        ofInventory(resetServer),
		"POST /drover/v1/servers/{server}/power":                        ofInventory(powerServer),
		"GET /drover/v1/servers/{server}/console":                       ofInventory(serverConsole),
		"GET /drover/v1/projects/{project}/backups/{cluster}":           listBackups,
		"PUT /drover/v1/projects/{project}/backups/{cluster}/{name}":    putBackup,
		"DELETE /drover/v1/projects/{project}/backups/{cluster}/{name}": deleteBackup,
	}
}

// ofProject checks access to the project before serving data that is the same for every project.
func ofProject(handle func(*call) (*reply, error)) func(*call) (*reply, error) {
	return func(c *call) (*reply, error) {
		if _, err := c.project(); err != nil {
			return nil, err
		}
		return handle(c)
	}
}

// newRoutes returns the dispatcher of calls, without a base.
func (s *Server) newRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, handle := range routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, handle) })
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, func(*call) (*reply, error) { return nil, errNotFound })
	})
	return mux
}

// handler serves the API below both of its bases.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base := ""
		if path, found := strings.CutPrefix(r.URL.Path, versionPrefix); found && (path == "" || path[0] == '/') {
			base = versionPrefix
			r = withPath(r, path)
		}
		s.routes.ServeHTTP(w, r.WithContext(withBase(r.Context(), base)))
	})
}

func withPath(r *http.Request, path string) *http.Request {
	if path == "" {
		path = "/"
	}
	u := *r.URL
	u.Path, u.RawPath = path, ""
	clone := *r
	clone.URL = &u
	return &clone
}

// serve handles one call: authenticate, inject faults, dispatch.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, handle func(*call) (*reply, error)) {
	if l := lookupOf(r.Context()); l != nil {
		l.out, l.err = handle(&call{Server: s, r: r, who: l.who, base: l.base})
		return
	}
	who, err := s.identify(r)
	if err != nil {
		s.limits.head(w, "")
		s.answer(w, r, nil, err)
		return
	}
	if !s.limits.admit(w, who.project) {
		s.answer(w, r, nil, errRateLimit)
		return
	}
	c := &call{Server: s, r: r, who: who, base: baseOf(r.Context())}
	strike, struck := c.injectedFault()
	if struck && !strike.After {
		s.respondWithFault(w, r, strike)
		return
	}
	out, err := c.handle(handle)
	if struck {
		s.corruptResponse(w, r, strike, out, err)
		return
	}
	s.answer(w, r, out, err)
}

// handle handles a call and adds what it includes to the response.
func (c *call) handle(handle func(*call) (*reply, error)) (*reply, error) {
	out, err := handle(c)
	if err == nil && out.body != nil {
		out.body, err = c.included(out.body)
	}
	return out, err
}

// answer writes a response or an error.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, out *reply, err error) {
	if err == nil && out.stream != nil {
		out.stream(w, r)
		return
	}
	status, body := s.encode(r, out, err)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// encode turns a response or an error into its JSON form.
func (s *Server) encode(r *http.Request, out *reply, err error) (status int, body []byte) {
	var refusal *request.Error
	switch {
	case err == nil && out.body == nil:
		return out.status, nil
	case err == nil:
		body, err = json.Marshal(out.body)
		if err == nil {
			return out.status, body
		}
	case errors.As(err, &refusal):
		body, _ = json.Marshal(map[string]any{"errors": refusal.Messages})
		return refusal.Status, body
	}
	s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	body, _ = json.Marshal(map[string]any{"errors": errOhSnap.Messages})
	return errOhSnap.Status, body
}
