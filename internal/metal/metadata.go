package metal

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// metadata is the document that the metadata service returns to a machine.
type metadata struct {
	ID              string            `json:"id"`
	Hostname        string            `json:"hostname"`
	IQN             string            `json:"iqn"`
	OperatingSystem metadataOS        `json:"operating_system"`
	Plan            string            `json:"plan"`
	Class           string            `json:"class"`
	Reserved        bool              `json:"reserved"`
	Metro           string            `json:"metro"`
	Facility        string            `json:"facility"`
	PrivateSubnets  []string          `json:"private_subnets"`
	Tags            []string          `json:"tags"`
	SSHKeys         []string          `json:"ssh_keys"`
	CustomData      api.Object        `json:"customdata"`
	Specs           api.Specs         `json:"specs"`
	SwitchShortID   string            `json:"switch_short_id"`
	Storage         api.Object        `json:"storage"`
	Network         metadataNetwork   `json:"network"`
	BGPNeighbors    []api.BGPNeighbor `json:"bgp_neighbors"`
	Volumes         []string          `json:"volumes"`
	APIURL          string            `json:"api_url"`
	PhoneHomeURL    string            `json:"phone_home_url"`
	UserStateURL    string            `json:"user_state_url"`
}

type metadataOS struct {
	Slug              string            `json:"slug"`
	Distro            string            `json:"distro"`
	Version           string            `json:"version"`
	ImageTag          string            `json:"image_tag"`
	LicenseActivation map[string]string `json:"license_activation"`
}

type metadataNetwork struct {
	Bonding    metadataBonding     `json:"bonding"`
	Interfaces []metadataInterface `json:"interfaces"`
	Addresses  []metadataAddress   `json:"addresses"`
}

type metadataBonding struct {
	Mode            int    `json:"mode"`
	LinkAggregation string `json:"link_aggregation"`
	MAC             string `json:"mac"`
}

type metadataInterface struct {
	Name string `json:"name"`
	MAC  string `json:"mac"`
	Bond string `json:"bond"`
}

type metadataAddress struct {
	ID            string `json:"id"`
	AddressFamily int    `json:"address_family"`
	Netmask       string `json:"netmask"`
	Public        bool   `json:"public"`
	CIDR          int    `json:"cidr"`
	Management    bool   `json:"management"`
	Enabled       bool   `json:"enabled"`
	Network       string `json:"network"`
	Address       string `json:"address"`
	Gateway       string `json:"gateway"`
	ParentBlock   any    `json:"parent_block"`
}

// MetadataHandler serves the metadata service. It identifies callers by their source address, so
// only machines may be able to reach it.
func (s *Server) MetadataHandler() http.Handler {
	mux := http.NewServeMux()
	serve := func(pattern string, handle func(*guest)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if g := s.guest(w, r); g != nil {
				handle(g)
			}
		})
	}
	serve("GET /metadata", func(g *guest) { g.json(http.StatusOK, g.metadata()) })
	serve("GET /userdata", (*guest).userdata)
	serve("GET /2009-04-04", (*guest).ec2Root)
	serve("GET /2009-04-04/user-data", (*guest).userdata)
	serve("GET /2009-04-04/meta-data", (*guest).ec2)
	serve("GET /2009-04-04/meta-data/{item...}", (*guest).ec2)
	serve("GET /latest/user-data", (*guest).userdata)
	serve("GET /latest/meta-data/{item...}", (*guest).ec2)
	serve("POST /phone-home", (*guest).phoneHome)
	serve("PUT /phone-home", (*guest).phoneHome)
	serve("POST /user-state", (*guest).userState)
	serve("POST /events", (*guest).userState)
	return mux
}

// maxGuestBody bounds the bodies of requests of machines.
const maxGuestBody = 64 << 10

// guest is a request from a machine.
type guest struct {
	*Server
	w    http.ResponseWriter
	r    *http.Request
	d    *store.Device
	data []byte
	keys []string
}

// guest identifies the machine that sent the request, or rejects it.
func (s *Server) guest(w http.ResponseWriter, r *http.Request) *guest {
	g := &guest{Server: s, w: w, r: r}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	source, err := netip.ParseAddr(host)
	if err != nil {
		g.refuse(http.StatusNotFound, "unknown source address")
		return nil
	}
	ids := s.store.Devices().All(store.Query{Terms: []string{"ip:" + source.Unmap().WithZone("").String()}})
	if len(ids) == 0 {
		g.refuse(http.StatusNotFound, "no device has the address "+host)
		return nil
	}
	l, err := s.devices.load(ids[0])
	g.d, g.data, g.keys = l.device, l.userdata, l.keys
	if err != nil || g.d == nil {
		g.refuse(http.StatusNotFound, "no device has the address "+host)
		return nil
	}
	return g
}

func (g *guest) refuse(status int, message string) {
	g.json(status, map[string]string{"error": message})
}

func (g *guest) json(status int, v any) {
	g.w.Header().Set("Content-Type", "application/json")
	g.w.WriteHeader(status)
	_ = json.NewEncoder(g.w).Encode(v)
}

// userdata serves the userdata until the first boot completes, or until software of others may run
// on the machine.
func (g *guest) userdata() {
	if !servesUserdata(g.d) {
		g.refuse(http.StatusNotFound, "userdata is served only during the first boot")
		return
	}
	g.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = g.w.Write(g.data) //nolint:gosec // Raw userdata is what was asked for, and it is text.
}

func (g *guest) metadata() metadata {
	d := g.d
	os := systemOf(d.OS)
	base := "http://" + g.r.Host
	m := metadata{
		ID: d.ID, Hostname: d.Hostname, IQN: iqn(d), Plan: d.Plan, Class: d.Plan, Reserved: d.ReservationID != "", Metro: d.Metro, Facility: d.Facility,
		OperatingSystem: metadataOS{Slug: d.OS, Distro: os.Distro, Version: os.Version, LicenseActivation: map[string]string{"state": "unlicensed"}},
		PrivateSubnets:  []string{"10.0.0.0/8"}, Tags: nonNil(d.Tags), SSHKeys: nonNil(g.keys), CustomData: api.ObjectOf(d.CustomData),
		SwitchShortID: catalog.ID("switch", d.Facility)[:8], Storage: api.ObjectOf(d.Storage), Network: networkOf(d), Volumes: []string{},
		PhoneHomeURL: base + "/phone-home", UserStateURL: base + "/user-state",
	}
	if e, err := g.home.ReadEndpoint(); err == nil {
		m.APIURL = e.URL
	}
	if plan := linker("").plan(d.Plan); plan != nil {
		m.Specs = plan.Specs
	}
	if neighbors, err := g.neighbors(d); err == nil {
		m.BGPNeighbors = neighbors
	}
	return m
}

func iqn(d *store.Device) string {
	return "iqn." + d.Created.UTC().Format("2006-01") + ".net.packet:device." + d.ID[:8]
}

func networkOf(d *store.Device) metadataNetwork {
	n := metadataNetwork{Bonding: metadataBonding{Mode: 4, LinkAggregation: "bonded", MAC: macOf(d.ID, 0)}, Addresses: []metadataAddress{}}
	for i, name := range []string{"eth0", "eth1"} {
		n.Interfaces = append(n.Interfaces, metadataInterface{Name: name, MAC: macOf(d.ID, i), Bond: "bond0"})
	}
	for _, a := range d.Addresses {
		r := linker("").assignment(a, d.ID)
		n.Addresses = append(n.Addresses, metadataAddress{
			ID: r.ID, AddressFamily: r.AddressFamily, Netmask: r.Netmask, Public: r.Public, CIDR: r.CIDR, Management: r.Management,
			Enabled: r.Enabled, Network: r.Network, Address: r.Address, Gateway: r.Gateway, ParentBlock: r.ParentBlock,
		})
	}
	return n
}

// phoneHome records that a machine has booted.
func (g *guest) phoneHome() {
	_ = g.Report(g.d.ID, driver.Event{Phase: driver.Running, Percent: 100, Type: stepName(len(provisioningSteps))})
	g.w.WriteHeader(http.StatusOK)
}

// userState records the progress of a machine's own setup.
func (g *guest) userState() {
	var state store.UserState
	if err := request.Decode(http.MaxBytesReader(g.w, g.r.Body, maxGuestBody), &state); err != nil {
		g.refuse(http.StatusBadRequest, "the body is too large or not valid JSON")
		return
	}
	state.Message = text.TruncateTo(state.Message, maxMessage)
	if problem := userStateProblem(state); problem != "" {
		g.refuse(http.StatusUnprocessableEntity, problem)
		return
	}
	err := g.change(g.d.ID, func(tx *store.Tx, d *store.Device) error {
		d.UserState = &state
		if err := dropUsedUserdata(tx, d); err != nil {
			return err
		}
		return g.addEvents(tx, d, []store.Event{{Type: userStateEvent, Body: strings.TrimSpace(state.State + ": " + state.Message), Time: g.now()}})
	})
	if err != nil {
		g.refuse(http.StatusInternalServerError, "recording the state failed")
		return
	}
	g.w.WriteHeader(http.StatusOK)
}

func userStateProblem(s store.UserState) string {
	switch {
	case s.State != "running" && s.State != "succeeded" && s.State != "failed":
		return "state must be running, succeeded or failed"
	case s.Code != 0 && (s.Code < 1000 || s.Code > 1099):
		return "code must be from 1000 to 1099"
	default:
		return ""
	}
}
