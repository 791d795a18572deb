package api

// Metro is a city.
type Metro struct {
	ID      string `json:"id"`
	Code    string `json:"code"`
	Name    string `json:"name"`
	Country string `json:"country"`
}

// Facility is a building in a metro.
type Facility struct {
	ID       string   `json:"id"`
	Code     string   `json:"code"`
	Name     string   `json:"name"`
	Features []string `json:"features,omitempty"`
	Metro    *Metro   `json:"metro,omitempty"`
}

// Plan is a type of machine.
type Plan struct {
	ID                string   `json:"id"`
	Slug              string   `json:"slug"`
	Name              string   `json:"name"`
	Description       string   `json:"description"`
	Line              string   `json:"line"`
	Legacy            bool     `json:"legacy"`
	Class             string   `json:"class"`
	Specs             Specs    `json:"specs"`
	Pricing           Pricing  `json:"pricing"`
	DeploymentTypes   []string `json:"deployment_types"`
	AvailableIn       []Href   `json:"available_in"`
	AvailableInMetros []Href   `json:"available_in_metros"`
}

// Specs is the hardware of a plan.
type Specs struct {
	CPUs   []CPU   `json:"cpus"`
	Memory Memory  `json:"memory"`
	Drives []Drive `json:"drives"`
	NICs   []NIC   `json:"nics"`
	// Features is always empty; clients expect an object.
	Features struct{} `json:"features"`
}

// CPU is a type of processor of a plan.
type CPU struct {
	Count int    `json:"count"`
	Type  string `json:"type"`
}

// Memory is the memory of a plan.
type Memory struct {
	Total string `json:"total"`
}

// Drive is a type of drive of a plan.
type Drive struct {
	Count int    `json:"count"`
	Size  string `json:"size"`
	Type  string `json:"type"`
}

// NIC is a type of network card of a plan.
type NIC struct {
	Count int    `json:"count"`
	Type  string `json:"type"`
}

// Pricing is the price of a plan: your own machines cost nothing per hour.
type Pricing struct {
	Hour float64 `json:"hour"`
}

// OperatingSystem is a system that machines can boot.
type OperatingSystem struct {
	ID              string   `json:"id"`
	Slug            string   `json:"slug"`
	Name            string   `json:"name"`
	Distro          string   `json:"distro"`
	Version         string   `json:"version"`
	ProvisionableOn []string `json:"provisionable_on"`
	Preinstallable  bool     `json:"preinstallable"`
	Licensed        bool     `json:"licensed"`
}

// UserdataValidate is the body of POST /userdata/validate.
type UserdataValidate struct {
	Userdata string `json:"userdata"`
}
