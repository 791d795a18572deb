package api

// User is the holder of a token.
type User struct {
	ID                    string  `json:"id"`
	ShortID               string  `json:"short_id"`
	FirstName             string  `json:"first_name"`
	LastName              string  `json:"last_name"`
	FullName              string  `json:"full_name"`
	Email                 string  `json:"email"`
	Emails                []Href  `json:"emails"`
	DefaultOrganizationID string  `json:"default_organization_id"`
	DefaultProjectID      *string `json:"default_project_id"`
	CreatedAt             *Time   `json:"created_at"`
	Href                  string  `json:"href"`
}

// Users is a page of users.
type Users struct {
	Users []User `json:"users"`
	Meta  Meta   `json:"meta"`
}

// Email is an address of a user.
type Email struct {
	ID       string `json:"id"`
	Address  string `json:"address"`
	Default  bool   `json:"default"`
	Verified bool   `json:"verified"`
	Href     string `json:"href"`
}

// Organization owns the projects.
type Organization struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Members   []Href `json:"members"`
	Projects  []Href `json:"projects"`
	CreatedAt *Time  `json:"created_at"`
	Href      string `json:"href"`
}

// Organizations is a page of organizations.
type Organizations struct {
	Organizations []Organization `json:"organizations"`
	Meta          Meta           `json:"meta"`
}
