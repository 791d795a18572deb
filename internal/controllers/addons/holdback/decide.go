package holdback

// lifetime is where a Cluster is in its life.
type lifetime int

const (
	stays lifetime = iota
	goes
	gone
)

// facts are what the choice depends on.
type facts struct {
	cluster lifetime
	// leaving says that the Machine is being deleted.
	leaving bool
	// releases is how many have to go before the Cluster.
	releases int
	hooked   bool
}

// action is what to do with the hook.
type action int

const (
	leave action = iota
	putOn
	takeOff
)

// decide says what to do. The hook is not put onto a Machine that is being deleted: it may be gone in a moment.
func decide(f facts) action {
	wanted := f.releases > 0 && f.cluster != gone && (f.cluster == goes || !f.leaving)
	switch {
	case f.hooked && !wanted:
		return takeOff
	case !f.hooked && wanted && !f.leaving:
		return putOn
	default:
		return leave
	}
}
