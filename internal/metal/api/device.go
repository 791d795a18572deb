package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Device is a machine.
type Device struct {
	ID                     string           `json:"id"`
	ShortID                string           `json:"short_id"`
	Href                   string           `json:"href"`
	Hostname               string           `json:"hostname"`
	Description            string           `json:"description"`
	State                  string           `json:"state"`
	Tags                   []string         `json:"tags"`
	IPAddresses            []IPAssignment   `json:"ip_addresses"`
	Facility               *Facility        `json:"facility"`
	Metro                  *Metro           `json:"metro"`
	Plan                   *Plan            `json:"plan"`
	OperatingSystem        *OperatingSystem `json:"operating_system"`
	Project                *Href            `json:"project"`
	BillingCycle           string           `json:"billing_cycle"`
	CreatedAt              *Time            `json:"created_at"`
	UpdatedAt              *Time            `json:"updated_at"`
	Userdata               string           `json:"userdata"`
	CustomData             Object           `json:"customdata"`
	Locked                 bool             `json:"locked"`
	HardwareReservation    *ReservationRef  `json:"hardware_reservation,omitempty"`
	ProvisioningPercentage int              `json:"provisioning_percentage"`
	ProvisioningEvents     []Event          `json:"provisioning_events"`
	SSHKeys                []Href           `json:"ssh_keys"`
	NetworkPorts           []Port           `json:"network_ports"`
	User                   string           `json:"user"`
	RootPassword           *string          `json:"root_password"`
	TerminationTime        *Time            `json:"termination_time"`
	SpotInstance           bool             `json:"spot_instance"`
	SpotPriceMax           float64          `json:"spot_price_max,omitempty"`
	SOS                    string           `json:"sos"`
	AlwaysPXE              bool             `json:"always_pxe"`
	IPXEScriptURL          string           `json:"ipxe_script_url,omitempty"`
	ImageURL               *string          `json:"image_url"`
	SwitchUUID             string           `json:"switch_uuid"`
	Storage                Object           `json:"storage,omitempty"`
	Volumes                []Href           `json:"volumes"`
	// KubernetesUpgrade is the last upgrade in place. It is an extension of the API.
	KubernetesUpgrade *KubernetesUpgrade `json:"kubernetes_upgrade,omitempty"`
	// KubernetesUpgradable reports whether the driver can upgrade Kubernetes in place. It is an
	// extension of the API.
	KubernetesUpgradable bool `json:"kubernetes_upgradable,omitempty"`
}

// KubernetesUpgrade is an upgrade of the Kubernetes of a device in place.
type KubernetesUpgrade struct {
	Version string `json:"version"`
	// State is pending, succeeded or failed.
	State     string `json:"state"`
	Message   string `json:"message,omitempty"`
	ChangedAt *Time  `json:"changed_at"`
}

// ReservationRef refers to the hardware reservation of a device.
type ReservationRef struct {
	ID   string `json:"id"`
	Href string `json:"href"`
}

// Devices is a page of devices.
type Devices struct {
	Devices []Device `json:"devices"`
	Meta    Meta     `json:"meta"`
}

// Port is a network port of a device.
type Port struct {
	ID          string   `json:"id"`
	Type        string   `json:"type"`
	Name        string   `json:"name"`
	Data        PortData `json:"data"`
	NetworkType string   `json:"network_type,omitempty"`
	Bond        *BondRef `json:"bond,omitempty"`
	Href        string   `json:"href"`
}

// PortData is the link layer of a port.
type PortData struct {
	MAC    *string `json:"mac"`
	Bonded bool    `json:"bonded"`
}

// BondRef names the bond that a port is part of.
type BondRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Strings is a list that may also be encoded as one string, with commas between elements.
type Strings []string

// UnmarshalJSON accepts both encodings and drops empty elements.
func (s *Strings) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		*s = nil
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		var one string
		if json.Unmarshal(data, &one) != nil {
			return fmt.Errorf("neither a string nor a list of strings")
		}
		list = strings.Split(one, ",")
	}
	*s = nil
	for _, v := range list {
		if v = strings.TrimSpace(v); v != "" {
			*s = append(*s, v)
		}
	}
	return nil
}

// DeviceCreate requests a device.
type DeviceCreate struct {
	Hostname              string            `json:"hostname"`
	Description           string            `json:"description"`
	Plan                  string            `json:"plan"`
	Metro                 Strings           `json:"metro"`
	Facility              Strings           `json:"facility"`
	OperatingSystem       string            `json:"operating_system"`
	BillingCycle          string            `json:"billing_cycle"`
	Userdata              string            `json:"userdata"`
	CustomData            Object            `json:"customdata"`
	Tags                  []string          `json:"tags"`
	IPXEScriptURL         string            `json:"ipxe_script_url"`
	AlwaysPXE             bool              `json:"always_pxe"`
	HardwareReservationID Strings           `json:"hardware_reservation_id"`
	SpotInstance          bool              `json:"spot_instance"`
	SpotPriceMax          Number            `json:"spot_price_max"`
	TerminationTime       *string           `json:"termination_time"`
	ProjectSSHKeys        []string          `json:"project_ssh_keys"`
	UserSSHKeys           []string          `json:"user_ssh_keys"`
	SSHKeys               []SSHKeyCreate    `json:"ssh_keys"`
	NoSSHKeys             bool              `json:"no_ssh_keys"`
	Features              json.RawMessage   `json:"features"`
	Locked                bool              `json:"locked"`
	Storage               Object            `json:"storage"`
	IPAddresses           []DeviceIPRequest `json:"ip_addresses"`
	PublicIPv4SubnetSize  int               `json:"public_ipv4_subnet_size"`
	PrivateIPv4SubnetSize int               `json:"private_ipv4_subnet_size"`
}

// DeviceIPRequest selects the management addresses of a device.
type DeviceIPRequest struct {
	AddressFamily  int      `json:"address_family"`
	Public         bool     `json:"public"`
	CIDR           int      `json:"cidr"`
	IPReservations []string `json:"ip_reservations"`
}

// Number is a number that may also be encoded as a string.
type Number float64

// UnmarshalJSON accepts both encodings.
func (n *Number) UnmarshalJSON(data []byte) error {
	data = bytes.Trim(data, `"`)
	if len(data) == 0 || bytes.Equal(data, []byte("null")) {
		*n = 0
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// DeviceUpdate changes the fields that are set.
type DeviceUpdate struct {
	Hostname      *string   `json:"hostname"`
	Description   *string   `json:"description"`
	Userdata      *string   `json:"userdata"`
	Locked        *bool     `json:"locked"`
	Tags          *[]string `json:"tags"`
	AlwaysPXE     *bool     `json:"always_pxe"`
	IPXEScriptURL *string   `json:"ipxe_script_url"`
	CustomData    Object    `json:"customdata"`
	BillingCycle  *string   `json:"billing_cycle"`
	SpotInstance  *bool     `json:"spot_instance"`
}

// DeviceAction changes the power state of a device, reinstalls it, or upgrades its Kubernetes.
type DeviceAction struct {
	Type            string `json:"type"`
	OperatingSystem string `json:"operating_system"`
	IPXEScriptURL   string `json:"ipxe_script_url"`
	ForceDelete     bool   `json:"force_delete"`
	DeprovisionFast bool   `json:"deprovision_fast"`
	PreserveData    bool   `json:"preserve_data"`
	// KubernetesVersion is what an upgrade installs. It is an extension of the API.
	KubernetesVersion string `json:"kubernetes_version"`
}

// DeviceDelete is the body that some clients send with DELETE.
type DeviceDelete struct {
	ForceDelete bool `json:"force_delete"`
}

// Event is something that happened to a device.
type Event struct {
	ID            string `json:"id,omitempty"`
	Type          string `json:"type"`
	Body          string `json:"body"`
	State         string `json:"state,omitempty"`
	Interpolated  string `json:"interpolated"`
	Relationships []Href `json:"relationships,omitempty"`
	CreatedAt     *Time  `json:"created_at"`
	Href          string `json:"href,omitempty"`
}

// Events is a page of events.
type Events struct {
	Events []Event `json:"events"`
	Meta   Meta    `json:"meta"`
}
