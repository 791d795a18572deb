package api

// BGPConfig is the BGP configuration of a project.
type BGPConfig struct {
	ID             string `json:"id,omitempty"`
	Status         string `json:"status,omitempty"`
	DeploymentType string `json:"deployment_type,omitempty"`
	ASN            int    `json:"asn,omitempty"`
	MD5            string `json:"md5,omitempty"`
	RouteObject    string `json:"route_object,omitempty"`
	MaxPrefix      int    `json:"max_prefix,omitempty"`
	Project        *Href  `json:"project,omitempty"`
	CreatedAt      *Time  `json:"created_at,omitempty"`
	RequestedAt    *Time  `json:"requested_at,omitempty"`
	Sessions       []Href `json:"sessions,omitempty"`
	Href           string `json:"href,omitempty"`
}

// BGPConfigRequest enables BGP for a project.
type BGPConfigRequest struct {
	ASN            int    `json:"asn"`
	MD5            string `json:"md5"`
	DeploymentType string `json:"deployment_type"`
	UseCase        string `json:"use_case"`
}

// BGPSession is a BGP session of a device.
type BGPSession struct {
	ID            string   `json:"id"`
	Status        string   `json:"status"`
	LearnedRoutes []string `json:"learned_routes"`
	AddressFamily string   `json:"address_family"`
	Device        *Href    `json:"device"`
	DefaultRoute  bool     `json:"default_route"`
	CreatedAt     *Time    `json:"created_at"`
	Href          string   `json:"href"`
}

// BGPSessions lists the sessions of a device, or a page of those of a project.
type BGPSessions struct {
	BGPSessions []BGPSession `json:"bgp_sessions"`
	Meta        Meta         `json:"meta"`
}

// BGPSessionRequest opens or changes a session.
type BGPSessionRequest struct {
	AddressFamily string `json:"address_family"`
	DefaultRoute  *bool  `json:"default_route"`
}

// BGPNeighbor is a peer of a device's sessions of one address family.
type BGPNeighbor struct {
	AddressFamily int        `json:"address_family"`
	CustomerAS    int        `json:"customer_as"`
	CustomerIP    string     `json:"customer_ip"`
	MD5Enabled    bool       `json:"md5_enabled"`
	MD5Password   *string    `json:"md5_password"`
	Multihop      bool       `json:"multihop"`
	PeerAS        int        `json:"peer_as"`
	PeerIPs       []string   `json:"peer_ips"`
	RoutesIn      []BGPRoute `json:"routes_in"`
	RoutesOut     []BGPRoute `json:"routes_out"`
}

// BGPRoute is an accepted or announced route.
type BGPRoute struct {
	Route string `json:"route"`
	Exact bool   `json:"exact"`
}

// BGPNeighbors is the response of GET /devices/{id}/bgp/neighbors.
type BGPNeighbors struct {
	BGPNeighbors []BGPNeighbor `json:"bgp_neighbors"`
}
