package holdback

// lifetime is the phase of a Cluster.
type lifetime int

const (
	alive lifetime = iota
	terminating
	gone
)

// facts are the inputs of the decision.
type facts struct {
	cluster lifetime
	// deleting reports that the Machine is being deleted.
	deleting bool
	// releases is how many releases are uninstalled before the Cluster is deleted.
	releases int
	hooked   bool
}

// action is what to do with the hook.
type action int

const (
	keepHook action = iota
	addHook
	removeHook
)

// decide returns the action. It adds no hook to a Machine that is being deleted, which may be gone
// already.
func decide(f facts) action {
	wanted := f.releases > 0 && f.cluster != gone && (f.cluster == terminating || !f.deleting)
	switch {
	case f.hooked && !wanted:
		return removeHook
	case !f.hooked && wanted && !f.deleting:
		return addHook
	default:
		return keepHook
	}
}
