package api

// Project owns devices, addresses and keys.
type Project struct {
	ID              string `json:"id"`
	Name            string `json:"name"`
	Href            string `json:"href"`
	CreatedAt       *Time  `json:"created_at"`
	UpdatedAt       *Time  `json:"updated_at"`
	CustomData      Object `json:"customdata,omitempty"`
	Devices         []Href `json:"devices"`
	SSHKeys         []Href `json:"ssh_keys"`
	Organization    *Href  `json:"organization"`
	Members         []Href `json:"members"`
	BackendTransfer bool   `json:"backend_transfer_enabled"`
	BGPConfig       *Href  `json:"bgp_config,omitempty"`
	// Token is set only in the response that creates the project.
	Token string `json:"token,omitempty"`
}

// Projects is a page of projects.
type Projects struct {
	Projects []Project `json:"projects"`
	Meta     Meta      `json:"meta"`
}

// ProjectCreate requests a project. ID is an extension of the API: it recreates a project with the
// ID that manifests refer to.
type ProjectCreate struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	CustomData Object `json:"customdata"`
}

// ProjectUpdate changes the fields that are set.
type ProjectUpdate struct {
	Name            *string `json:"name"`
	BackendTransfer *bool   `json:"backend_transfer_enabled"`
	CustomData      Object  `json:"customdata"`
}

// SSHKey is a public key.
type SSHKey struct {
	ID          string   `json:"id"`
	Label       string   `json:"label"`
	Key         string   `json:"key"`
	Fingerprint string   `json:"fingerprint"`
	Tags        []string `json:"tags"`
	CreatedAt   *Time    `json:"created_at"`
	UpdatedAt   *Time    `json:"updated_at"`
	Entity      *Href    `json:"entity"`
	Owner       *Href    `json:"owner"`
	Href        string   `json:"href"`
}

// SSHKeys lists the keys of a project.
type SSHKeys struct {
	SSHKeys []SSHKey `json:"ssh_keys"`
}

// SSHKeyCreate adds a key.
type SSHKeyCreate struct {
	Label string   `json:"label"`
	Key   string   `json:"key"`
	Tags  []string `json:"tags"`
}

// SSHKeyUpdate changes the fields that are set.
type SSHKeyUpdate struct {
	Label *string   `json:"label"`
	Key   *string   `json:"key"`
	Tags  *[]string `json:"tags"`
}

// HardwareReservation is a machine reserved for a project.
type HardwareReservation struct {
	ID            string    `json:"id"`
	ShortID       string    `json:"short_id"`
	Href          string    `json:"href"`
	Facility      *Facility `json:"facility"`
	Plan          *Plan     `json:"plan"`
	Project       *Href     `json:"project"`
	Device        *Href     `json:"device,omitempty"`
	Provisionable bool      `json:"provisionable"`
	Spare         bool      `json:"spare"`
	NeedOfService bool      `json:"need_of_service"`
	CreatedAt     *Time     `json:"created_at"`
}

// HardwareReservations is a page of reservations.
type HardwareReservations struct {
	HardwareReservations []HardwareReservation `json:"hardware_reservations"`
	Meta                 Meta                  `json:"meta"`
}

// HardwareReservationCreate reserves a machine. It is an extension of the API.
type HardwareReservationCreate struct {
	ID       string `json:"id"`
	Plan     string `json:"plan"`
	Metro    string `json:"metro"`
	Facility string `json:"facility"`
}
