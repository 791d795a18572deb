package api

import "github.com/drover-dev/drover/internal/metal/capacity"

// Capacity is the capacity level by location and plan.
type Capacity struct {
	Capacity map[string]map[string]CapacityLevel `json:"capacity"`
}

// CapacityLevel is normal, limited or unavailable.
type CapacityLevel struct {
	Level string `json:"level"`
}

// CapacityCheck requests, and returns, the availability of servers.
type CapacityCheck struct {
	Servers []CapacityServer `json:"servers"`
}

// CapacityServer is one item of a capacity check.
type CapacityServer struct {
	Facility  string `json:"facility,omitempty"`
	Metro     string `json:"metro,omitempty"`
	Plan      string `json:"plan"`
	Quantity  Number `json:"quantity"`
	Available bool   `json:"available"`
}

// CapacityReport shows an administrator what there is. It is an extension of the API.
type CapacityReport struct {
	capacity.Settings
	// Host is nil if nothing bounds machines.
	Host *HostCapacity `json:"host"`
	// Plans has one entry per plan, and one per metro that is limited.
	Plans []PlanCapacity `json:"plans"`
}

// HostCapacity is what the machines of a host share.
type HostCapacity struct {
	CPUs        ResourceCapacity `json:"cpus"`
	MemoryBytes ResourceCapacity `json:"memory_bytes"`
	DiskBytes   ResourceCapacity `json:"disk_bytes"`
}

// ResourceCapacity is one resource of a host.
type ResourceCapacity struct {
	// Real is what the host has; Total is what machines may use, with overcommit.
	Real  int64 `json:"real"`
	Total int64 `json:"total"`
	Used  int64 `json:"used"`
	Free  int64 `json:"free"`
}

// PlanCapacity is how many machines of a plan there are, and can be.
type PlanCapacity struct {
	Plan string `json:"plan"`
	// Metro is empty if it makes no difference.
	Metro string `json:"metro,omitempty"`
	Used  int    `json:"used"`
	// Free is nil if nothing bounds it.
	Free *int `json:"free"`
}

// ProjectQuota is the quota of a project, and what it uses. It is an extension of the API.
type ProjectQuota struct {
	Quota capacity.Quota      `json:"quota"`
	Used  capacity.ProjectUse `json:"used"`
}
