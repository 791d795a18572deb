package metal

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal/api"
)

// Audiences of routes.
const (
	// owners sees only the caller's project, and gets 403 for another.
	owners = http.StatusForbidden
	// hidden is about one object; objects of other projects are not found.
	hidden = http.StatusNotFound
	// everybody is the same for every caller.
	everybody = 0
	// own returns what the caller may access.
	own = 1
)

// audience is the audience of each route. A new route needs a line here.
var audience = map[string]int{
	"GET /projects":              own,
	"POST /projects":             owners,
	"GET /projects/{project}":    owners,
	"PUT /projects/{project}":    owners,
	"PATCH /projects/{project}":  owners,
	"DELETE /projects/{project}": owners,

	"GET /projects/{project}/devices":  owners,
	"POST /projects/{project}/devices": owners,
	"GET /devices/{device}":            hidden,
	"PUT /devices/{device}":            hidden,
	"PATCH /devices/{device}":          hidden,
	"DELETE /devices/{device}":         hidden,
	"POST /devices/{device}/actions":   hidden,
	"GET /devices/{device}/events":     hidden,

	"GET /projects/{project}/ips":  owners,
	"POST /projects/{project}/ips": owners,
	"GET /devices/{device}/ips":    hidden,
	"POST /devices/{device}/ips":   hidden,
	"GET /ips/{ip}":                hidden,
	"PATCH /ips/{ip}":              hidden,
	"PUT /ips/{ip}":                hidden,
	"DELETE /ips/{ip}":             hidden,
	"GET /ips/{ip}/available":      hidden,

	"GET /projects/{project}/bgp-config":   owners,
	"POST /projects/{project}/bgp-configs": owners,
	"GET /projects/{project}/bgp/sessions": owners,
	"GET /devices/{device}/bgp/sessions":   hidden,
	"POST /devices/{device}/bgp/sessions":  hidden,
	"GET /devices/{device}/bgp/neighbors":  hidden,
	"GET /bgp/sessions/{session}":          hidden,
	"PUT /bgp/sessions/{session}":          hidden,
	"DELETE /bgp/sessions/{session}":       hidden,

	"GET /projects/{project}/events":             owners,
	"GET /events":                                own,
	"GET /events/{event}":                        hidden,
	"GET /ports/{port}":                          hidden,
	"GET /user":                                  own,
	"GET /users":                                 own,
	"GET /users/{user}":                          hidden,
	"GET /emails/{email}":                        hidden,
	"GET /organizations":                         own,
	"GET /organizations/{organization}":          own,
	"GET /organizations/{organization}/projects": own,
	"GET /organizations/{organization}/plans":    everybody,
	"GET /organizations/{organization}/events":   own,
	"GET /facilities/{facility}":                 everybody,

	"GET /ssh-keys":                     own,
	"POST /ssh-keys":                    own,
	"GET /projects/{project}/ssh-keys":  owners,
	"POST /projects/{project}/ssh-keys": owners,
	"GET /ssh-keys/{key}":               hidden,
	"PUT /ssh-keys/{key}":               hidden,
	"PATCH /ssh-keys/{key}":             hidden,
	"DELETE /ssh-keys/{key}":            hidden,

	"GET /projects/{project}/hardware-reservations": owners,
	"GET /hardware-reservations/{reservation}":      hidden,

	"GET /locations/metros":              everybody,
	"GET /locations/metros/{metro}":      everybody,
	"GET /facilities":                    everybody,
	"GET /projects/{project}/facilities": owners,
	"GET /plans":                         everybody,
	"GET /projects/{project}/plans":      owners,
	"GET /operating-systems":             everybody,
	"GET /capacity":                      everybody,
	"POST /capacity":                     everybody,
	"GET /capacity/metros":               everybody,
	"POST /capacity/metros":              everybody,
	"POST /userdata/validate":            everybody,

	"GET /drover/v1/devices":                                   own,
	"GET /drover/v1/devices/{device}":                          hidden,
	"GET /drover/v1/devices/{device}/console":                  hidden,
	"POST /drover/v1/devices/{device}/exec":                    owners,
	"POST /drover/v1/projects/{project}/tokens":                owners,
	"POST /drover/v1/projects/{project}/hardware-reservations": owners,
	"DELETE /drover/v1/hardware-reservations/{reservation}":    owners,
	"GET /drover/v1/projects/{project}/faults":                 owners,
	"POST /drover/v1/projects/{project}/faults":                owners,
	"DELETE /drover/v1/projects/{project}/faults":              owners,
	"DELETE /drover/v1/projects/{project}/faults/{fault}":      owners,
	"GET /drover/v1/capacity":                                  owners,
	"PUT /drover/v1/capacity":                                  owners,
	"GET /drover/v1/projects/{project}/quota":                  owners,
	"PUT /drover/v1/projects/{project}/quota":                  owners,
	"GET /drover/v1/servers":                                   owners,
	"POST /drover/v1/servers":                                  owners,
	"GET /drover/v1/servers/{server}":                          owners,
	"PUT /drover/v1/servers/{server}":                          owners,
	"DELETE /drover/v1/servers/{server}":                       owners,
	"POST /drover/v1/servers/{server}/check":                   owners,
	"POST /drover/v1/servers/{server}/reset":                   owners,
	"POST /drover/v1/servers/{server}/power":                   owners,
	"GET /drover/v1/servers/{server}/console":                  owners,

	"GET /drover/v1/projects/{project}/backups/{cluster}":           owners,
	"PUT /drover/v1/projects/{project}/backups/{cluster}/{name}":    owners,
	"DELETE /drover/v1/projects/{project}/backups/{cluster}/{name}": owners,
}

func TestEveryRouteHasAnAudience(t *testing.T) {
	want, got := slices.Sorted(maps.Keys(routes())), slices.Sorted(maps.Keys(audience))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-served +known): say whom a new route answers:\n%s", diff)
	}
}

// estate is one of each object that a project can have.
type estate struct {
	project, device, assignment, block, session, key, reservation, fault, event, port string
}

func (w *world) newEstate() estate {
	w.t.Helper()
	e := estate{project: w.project}
	e.device = w.awaitState(w.create(order("mine", "secret-tag")).ID, StateActive).ID
	var block api.IPReservation
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/ips", map[string]any{"type": "public_ipv4", "quantity": 1, "metro": "da"}, &block)
	var assignment api.IPAssignment
	w.must(http.StatusCreated, "POST", "/devices/"+e.device+"/ips", map[string]string{"address": block.Address}, &assignment)
	w.must(http.StatusNoContent, "POST", "/projects/"+w.project+"/bgp-configs", map[string]any{"deployment_type": "local", "asn": 65000}, nil)
	var session api.BGPSession
	w.must(http.StatusCreated, "POST", "/devices/"+e.device+"/bgp/sessions", map[string]string{"address_family": "ipv4"}, &session)
	var key api.SSHKey
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/ssh-keys", map[string]string{"label": "a", "key": testKey}, &key)
	var reservation api.HardwareReservation
	w.call(w.admin, "POST", "/drover/v1/projects/"+w.project+"/hardware-reservations", map[string]string{"plan": "c3.small.x86", "metro": "da"}, &reservation)
	var f struct{ ID string }
	w.must(http.StatusCreated, "POST", "/drover/v1/projects/"+w.project+"/faults", map[string]any{"kind": "no-capacity", "hostname": "nobody"}, &f)
	var events api.Events
	w.must(http.StatusOK, "GET", "/devices/"+e.device+"/events", nil, &events)
	e.event, e.port = events.Events[0].ID, portID(e.device, portNames[0])
	e.block, e.assignment, e.session, e.key, e.reservation, e.fault = block.ID, assignment.ID, session.ID, key.ID, reservation.ID, f.ID
	return e
}

// ids returns all names by which an object of the project could be found.
func (e estate) ids() []string {
	return []string{e.project, e.device, e.assignment, e.block, e.session, e.key, e.reservation, e.fault, e.event, e.port, userID(e.project), "secret-tag"}
}

// paths fills in a route; /ips identifies two kinds of objects.
func (e estate) paths(route string) []string {
	_, path, _ := strings.Cut(route, " ")
	fill := func(ip string) string {
		return strings.NewReplacer("{project}", e.project, "{device}", e.device, "{ip}", ip, "{session}", e.session, "{key}", e.key,
			"{reservation}", e.reservation, "{fault}", e.fault, "{metro}", "da", "{facility}", "da11",
			"{event}", e.event, "{port}", e.port, "{user}", userID(e.project), "{email}", emailID(userID(e.project)), "{organization}", organizationID()).Replace(path)
	}
	if strings.Contains(path, "{ip}") {
		return []string{fill(e.block), fill(e.assignment)}
	}
	return []string{fill("")}
}

// body is valid for some routes; no route may read it before checking the token.
const body = `{"name":"x","type":"power_off","address":"1.2.3.4","deployment_type":"local","address_family":"ipv4","label":"l","key":"` + testKey + `","kind":"no-capacity"}`

func TestTokensCannotReachOtherProjects(t *testing.T) {
	w := newWorld(t)
	e := w.newEstate()
	var other api.Project
	w.call(w.admin, "POST", "/projects", map[string]string{"name": "other"}, &other)
	before := w.visibleObjects(e)
	for _, route := range slices.Sorted(maps.Keys(audience)) {
		method, _, _ := strings.Cut(route, " ")
		for _, path := range e.paths(route) {
			w.checkDenied(other.Token, method, path, e, audience[route])
			for _, token := range []string{"", "no such token"} {
				if got := w.call(token, method, path, body, nil); got != http.StatusUnauthorized {
					t.Errorf("%s %s answered %d to token %q", method, path, got, token)
				}
			}
		}
	}
	if diff := cmp.Diff(before, w.visibleObjects(e)); diff != "" {
		t.Errorf("a stranger changed something (-before +after):\n%s", diff)
	}
}

// checkDenied sends a request with a token that lacks access.
func (w *world) checkDenied(token, method, path string, e estate, who int) {
	w.t.Helper()
	answer, data, err := w.rawAs(token, method, path)
	if err != nil {
		w.t.Fatal(err)
	}
	switch {
	case who >= http.StatusBadRequest && answer != who:
		w.t.Errorf("%s %s answered %d to a stranger, want %d", method, path, answer, who)
	case who < http.StatusBadRequest && answer >= http.StatusInternalServerError:
		w.t.Errorf("%s %s answered %d", method, path, answer)
	}
	for _, id := range e.ids() {
		if strings.Contains(data, id) {
			w.t.Errorf("%s %s reveals %s to another project: %s", method, path, id, data)
		}
	}
}

func (w *world) rawAs(token, method, path string) (status int, data string, err error) {
	mine := w.token
	w.token = token
	defer func() { w.token = mine }()
	answer, raw, err := w.raw(w.t.Context(), method, path, body)
	return answer.StatusCode, string(raw), err
}

// visibleObjects returns all that the project's owner sees.
func (w *world) visibleObjects(e estate) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, path := range []string{
		"/projects/" + e.project, "/projects/" + e.project + "/devices", "/devices/" + e.device, "/devices/" + e.device + "/events",
		"/projects/" + e.project + "/ips", "/ips/" + e.assignment, "/projects/" + e.project + "/bgp-config", "/bgp/sessions/" + e.session,
		"/projects/" + e.project + "/ssh-keys", "/projects/" + e.project + "/hardware-reservations", "/drover/v1/projects/" + e.project + "/faults",
	} {
		answer, data, err := w.raw(w.t.Context(), http.MethodGet, path, "")
		if err != nil {
			w.t.Fatal(err)
		}
		out[path] = fmt.Sprintf("%d %s", answer.StatusCode, data)
	}
	return out
}
