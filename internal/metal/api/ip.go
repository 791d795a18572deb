package api

// IPAssignment is an address assigned to a device.
type IPAssignment struct {
	ID            string       `json:"id"`
	Address       string       `json:"address"`
	AddressFamily int          `json:"address_family"`
	Public        bool         `json:"public"`
	Management    bool         `json:"management"`
	Manageable    bool         `json:"manageable"`
	Enabled       bool         `json:"enabled"`
	GlobalIP      bool         `json:"global_ip"`
	CIDR          int          `json:"cidr"`
	Gateway       string       `json:"gateway"`
	Netmask       string       `json:"netmask"`
	Network       string       `json:"network"`
	AssignedTo    *Href        `json:"assigned_to"`
	ParentBlock   *ParentBlock `json:"parent_block,omitempty"`
	CreatedAt     *Time        `json:"created_at"`
	Href          string       `json:"href"`
}

// ParentBlock is the block that an assigned address was taken from.
type ParentBlock struct {
	Network string `json:"network"`
	Netmask string `json:"netmask"`
	CIDR    int    `json:"cidr"`
	Href    string `json:"href"`
}

// IPAssignments are the addresses of a device.
type IPAssignments struct {
	IPAddresses []IPAssignment `json:"ip_addresses"`
	Meta        Meta           `json:"meta"`
}

// IPReservation is a block of addresses of a project. Some clients reject the whole object if it
// has an unknown field, so no field is ever added.
type IPReservation struct {
	ID            string         `json:"id"`
	Address       string         `json:"address"`
	AddressFamily int            `json:"address_family"`
	CIDR          int            `json:"cidr"`
	Type          string         `json:"type"`
	Public        bool           `json:"public"`
	Management    bool           `json:"management"`
	Manageable    bool           `json:"manageable"`
	Enabled       bool           `json:"enabled"`
	Bill          bool           `json:"bill"`
	Addon         bool           `json:"addon"`
	GlobalIP      bool           `json:"global_ip"`
	State         string         `json:"state"`
	Tags          []string       `json:"tags"`
	Assignments   []IPAssignment `json:"assignments"`
	Available     string         `json:"available"`
	Facility      *Facility      `json:"facility,omitempty"`
	Metro         *Metro         `json:"metro,omitempty"`
	Project       *Href          `json:"project"`
	Gateway       string         `json:"gateway"`
	Netmask       string         `json:"netmask"`
	Network       string         `json:"network"`
	CustomData    Object         `json:"customdata,omitempty"`
	Details       string         `json:"details"`
	CreatedAt     *Time          `json:"created_at"`
	Href          string         `json:"href"`
}

// IPReservations is a page of blocks.
type IPReservations struct {
	IPAddresses []IPReservation `json:"ip_addresses"`
	Meta        Meta            `json:"meta"`
}

// IPReserve requests a block.
type IPReserve struct {
	Type                   string   `json:"type"`
	Quantity               int      `json:"quantity"`
	Facility               string   `json:"facility"`
	Metro                  string   `json:"metro"`
	Details                string   `json:"details"`
	Comments               string   `json:"comments"`
	Tags                   []string `json:"tags"`
	CustomData             Object   `json:"customdata"`
	FailOnApprovalRequired bool     `json:"fail_on_approval_required"`
}

// IPReservationUpdate changes the fields that are set.
type IPReservationUpdate struct {
	Tags       *[]string `json:"tags"`
	Details    *string   `json:"details"`
	CustomData Object    `json:"customdata"`
}

// IPAssign assigns an address of a block to a device.
type IPAssign struct {
	Address    string `json:"address"`
	Manageable *bool  `json:"manageable"`
}

// IPAvailable lists free blocks of a size.
type IPAvailable struct {
	Available []string `json:"available"`
}
