package store

import (
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal/capacity"
)

// Project is a record.
type Project struct {
	ID              string          `json:"id"`
	Name            string          `json:"name"`
	Created         time.Time       `json:"created"`
	Updated         time.Time       `json:"updated"`
	CustomData      json.RawMessage `json:"customData,omitempty"`
	BackendTransfer bool            `json:"backendTransfer,omitempty"`
	Quota           capacity.Quota  `json:"quota"`
}

// Token grants access to one project, or to all if Project is empty. Only its hash is stored.
type Token struct {
	Hash    string    `json:"hash"`
	Project string    `json:"project,omitempty"`
	Created time.Time `json:"created"`
}

// Device is a record: the desired and the observed state of a machine.
type Device struct {
	ID          string   `json:"id"`
	Seq         uint64   `json:"seq"`
	ProjectID   string   `json:"projectID"`
	Hostname    string   `json:"hostname"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Metro       string   `json:"metro"`
	Facility    string   `json:"facility"`
	Plan        string   `json:"plan"`
	OS          string   `json:"os"`

	BillingCycle    string          `json:"billingCycle,omitempty"`
	CustomData      json.RawMessage `json:"customData,omitempty"`
	Storage         json.RawMessage `json:"storage,omitempty"`
	IPXEScriptURL   string          `json:"ipxeScriptURL,omitempty"`
	AlwaysPXE       bool            `json:"alwaysPXE,omitempty"`
	Locked          bool            `json:"locked,omitempty"`
	SpotInstance    bool            `json:"spotInstance,omitempty"`
	SpotPriceMax    float64         `json:"spotPriceMax,omitempty"`
	TerminationTime time.Time       `json:"terminationTime,omitzero"`
	SSHKeyIDs       []string        `json:"sshKeyIDs,omitempty"`
	ReservationID   string          `json:"reservationID,omitempty"`
	ServerID        string          `json:"serverID,omitempty"` // of the inventory
	Addresses       []Address       `json:"addresses,omitempty"`
	// Endpoint is the address that the device moves together with other devices of its control
	// plane, and EndpointID its block, if it does.
	Endpoint   netip.Addr `json:"endpoint,omitzero"`
	EndpointID string     `json:"endpointID,omitempty"`

	// Desired state.
	Power     string `json:"power"`
	Cycle     bool   `json:"cycle,omitempty"`     // off, then on again
	Reinstall bool   `json:"reinstall,omitempty"` // not asked of the driver yet
	Deleting  bool   `json:"deleting,omitempty"`

	// Observed state.
	State     string      `json:"state"`
	Percent   int         `json:"percent"`
	Steps     []time.Time `json:"steps,omitempty"` // when each provisioning step was reached
	Events    uint64      `json:"events"`          // number of the last event
	UserState *UserState  `json:"userState,omitempty"`
	Userdata  Userdata    `json:"userdata,omitempty"`
	Trouble   string      `json:"trouble,omitempty"` // why the driver does not do what is wanted
	Upgrade   *Upgrade    `json:"upgrade,omitempty"` // the last one in place
	Created   time.Time   `json:"created"`
	Updated   time.Time   `json:"updated"`

	// Injected faults.
	HoldUntil time.Time `json:"holdUntil,omitzero"` // the driver is not asked before
	Doomed    bool      `json:"doomed,omitempty"`   // provisioning will fail
	Vanish    int       `json:"vanish,omitempty"`   // status of GET once an on-demand device failed
}

// Userdata is what happened to the userdata of a device, which is stored separately. It usually
// holds keys, so it exists only until the machine has used it.
type Userdata string

// States of userdata.
const (
	// UserdataServed is stored, and the machine may read it.
	UserdataServed Userdata = ""
	// UserdataClosed is stored, but no longer served.
	UserdataClosed Userdata = "closed"
	// UserdataDeleted was deleted after the boot that executed it.
	UserdataDeleted Userdata = "deleted"
	// UserdataNext is stored for the next installation of the machine.
	UserdataNext Userdata = "next"
)

// Upgrade is an upgrade of the Kubernetes of a machine in place.
type Upgrade struct {
	Version string       `json:"version"`
	State   UpgradeState `json:"state"`
	// Message is why it failed.
	Message string    `json:"message,omitempty"`
	Changed time.Time `json:"changed"`
}

// UpgradeState is the state of an upgrade.
type UpgradeState string

// States of upgrades.
const (
	UpgradePending   UpgradeState = "pending"
	UpgradeSucceeded UpgradeState = "succeeded"
	UpgradeFailed    UpgradeState = "failed"
)

// UserState is a machine's report about its own setup.
type UserState struct {
	State   string `json:"state"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Address is an address on a device.
type Address struct {
	ID         string       `json:"id"`
	BlockID    string       `json:"blockID"`
	IP         netip.Addr   `json:"ip"`
	Prefix     netip.Prefix `json:"prefix"`
	Gateway    netip.Addr   `json:"gateway"`
	Public     bool         `json:"public"`
	Management bool         `json:"management"`
	Created    time.Time    `json:"created"`
}

func (d *Device) entry() Entry {
	terms := []string{"metro:" + d.Metro, "facility:" + d.Facility, "hostname:" + strings.ToLower(d.Hostname), "plan:" + d.Plan}
	if d.ReservationID != "" {
		terms = append(terms, "reserved:true", "reservation:"+d.ReservationID)
	} else {
		terms = append(terms, "reserved:false")
	}
	for _, tag := range d.Tags {
		terms = append(terms, "tag:"+tag)
	}
	for _, a := range d.Addresses {
		terms = append(terms, "ip:"+a.IP.String())
	}
	text := strings.ToLower(strings.Join(append([]string{d.ID, d.Description, d.OS}, terms...), "\n"))
	return Entry{ID: d.ID, Project: d.ProjectID, Seq: d.Seq, Terms: terms, Text: text}
}

// Event is an event of a device.
type Event struct {
	ID   string    `json:"id"`
	Type string    `json:"type"`
	Body string    `json:"body"`
	Time time.Time `json:"time"`
}

// Block is a range of addresses of a project: a reserved block, or the block of a management
// address.
type Block struct {
	ID         string          `json:"id"`
	Seq        uint64          `json:"seq"`
	ProjectID  string          `json:"projectID"`
	Type       string          `json:"type"`
	State      string          `json:"state"`
	Prefix     netip.Prefix    `json:"prefix"`
	Network    netip.Prefix    `json:"network"`
	Gateway    netip.Addr      `json:"gateway"`
	Management bool            `json:"management,omitempty"`
	Metro      string          `json:"metro,omitempty"`
	Facility   string          `json:"facility,omitempty"`
	Tags       []string        `json:"tags,omitempty"`
	Details    string          `json:"details,omitempty"`
	CustomData json.RawMessage `json:"customData,omitempty"`
	Uses       []Use           `json:"uses,omitempty"`
	// Movers are the devices that move the address among themselves, whichever it is assigned to.
	Movers  []string  `json:"movers,omitempty"`
	Created time.Time `json:"created"`
}

// Use is an address of a block that is assigned to a device.
type Use struct {
	ID       string       `json:"id"`
	DeviceID string       `json:"deviceID"`
	Prefix   netip.Prefix `json:"prefix"`
	// Management marks the address that a device was created with, which can't move.
	Management bool      `json:"management,omitempty"`
	Created    time.Time `json:"created"`
}

// managementSeq sorts the blocks of devices after all reserved ones, so that old clients that read
// only one page find their reservations.
const managementSeq = 1 << 62

func (b *Block) entry() Entry {
	seq := b.Seq
	if b.Management {
		seq += managementSeq
	}
	terms := []string{"type:" + b.Type, "metro:" + b.Metro, "facility:" + b.Facility, "address:" + b.Prefix.Addr().String()}
	for _, tag := range b.Tags {
		terms = append(terms, "tag:"+tag)
	}
	return Entry{ID: b.ID, Project: b.ProjectID, Seq: seq, Terms: terms}
}

// Assigned finds the device and the block of an assigned address.
type Assigned struct {
	ID       string `json:"id"`
	DeviceID string `json:"deviceID"`
	BlockID  string `json:"blockID"`
}

// SSHKey is a record. Without a project, it applies to all devices.
type SSHKey struct {
	ID        string    `json:"id"`
	ProjectID string    `json:"projectID,omitempty"`
	Label     string    `json:"label"`
	Key       string    `json:"key"`
	Tags      []string  `json:"tags,omitempty"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
}

// Hardware is a machine reserved for a project.
type Hardware struct {
	ID        string    `json:"id"`
	Seq       uint64    `json:"seq"`
	ProjectID string    `json:"projectID"`
	Plan      string    `json:"plan"`
	Metro     string    `json:"metro"`
	Facility  string    `json:"facility"`
	DeviceID  string    `json:"deviceID,omitempty"`
	Created   time.Time `json:"created"`
}

// BGPConfig is a record.
type BGPConfig struct {
	ID             string    `json:"id"`
	ProjectID      string    `json:"projectID"`
	ASN            int       `json:"asn"`
	MD5            string    `json:"md5,omitempty"`
	DeploymentType string    `json:"deploymentType"`
	UseCase        string    `json:"useCase,omitempty"`
	Created        time.Time `json:"created"`
}

// BGPSession is a record.
type BGPSession struct {
	ID           string    `json:"id"`
	Seq          uint64    `json:"seq"`
	ProjectID    string    `json:"projectID"`
	DeviceID     string    `json:"deviceID"`
	Family       string    `json:"family"`
	DefaultRoute bool      `json:"defaultRoute,omitempty"`
	Created      time.Time `json:"created"`
}

func (s *BGPSession) entry() Entry {
	return Entry{ID: s.ID, Project: s.ProjectID, Seq: s.Seq, Terms: []string{"device:" + s.DeviceID}}
}

// Gone records a device that was removed after failing to provision.
type Gone struct {
	ID        string    `json:"id"`
	ProjectID string    `json:"projectID"`
	Status    int       `json:"status"`
	Time      time.Time `json:"time"`
}
