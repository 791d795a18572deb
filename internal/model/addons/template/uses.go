package template

import "text/template/parse"

// Uses is what a template refers to.
type Uses struct{ Cluster, ControlPlane, InfraCluster Use }

// Use is how much of an object a template refers to.
type Use struct {
	// Any is true if the template refers to any part of the object.
	Any bool
	// Status is true if it refers to the status, which changes more often than the rest.
	Status bool
}

// Or returns what either refers to.
func (u Uses) Or(o Uses) Uses {
	return Uses{u.Cluster.or(o.Cluster), u.ControlPlane.or(o.ControlPlane), u.InfraCluster.or(o.InfraCluster)}
}

func (u Use) or(o Use) Use { return Use{u.Any || o.Any, u.Status || o.Status} }

// walker finds what a template refers to and which functions it calls.
type walker struct {
	uses  *Uses
	calls map[string]bool
	// root reports that the dot is all the data: neither in a loop over something else, nor in a
	// template that is called with something else. A template that is called with all the data
	// refers to it where it is called.
	root bool
}

func (w walker) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, node := range l.Nodes {
		w.node(node)
	}
}

func (w walker) node(node parse.Node) {
	inside := w
	inside.root = false
	switch n := node.(type) {
	case *parse.ActionNode:
		w.pipe(n.Pipe)
	case *parse.TemplateNode:
		w.pipe(n.Pipe)
	case *parse.IfNode:
		w.branch(&n.BranchNode, w)
	case *parse.WithNode:
		w.branch(&n.BranchNode, inside)
	case *parse.RangeNode:
		w.branch(&n.BranchNode, inside)
	case *parse.PipeNode:
		w.pipe(n)
	case *parse.ChainNode:
		w.node(n.Node)
	case *parse.IdentifierNode:
		w.calls[n.Ident] = true
	default:
		w.reference(n)
	}
}

func (w walker) reference(node parse.Node) {
	switch n := node.(type) {
	case *parse.DotNode:
		if w.root {
			w.path(nil)
		}
	case *parse.FieldNode:
		if w.root {
			w.path(n.Ident)
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			w.path(n.Ident[1:])
		}
	}
}

func (w walker) branch(b *parse.BranchNode, inside walker) {
	w.pipe(b.Pipe)
	inside.list(b.List)
	w.list(b.ElseList)
}

func (w walker) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, command := range p.Cmds {
		for _, arg := range command.Args {
			w.node(arg)
		}
	}
}

// path records a reference to all the data, or to a part of it.
func (w walker) path(ident []string) {
	for name, use := range map[string]*Use{
		"Cluster": &w.uses.Cluster, "ControlPlane": &w.uses.ControlPlane, "InfraCluster": &w.uses.InfraCluster,
	} {
		if len(ident) > 0 && ident[0] != name {
			continue
		}
		use.Any = true
		use.Status = use.Status || len(ident) < 2 || ident[1] == "status"
	}
	if len(ident) > 0 && ident[0] == "Variables" {
		w.uses.Cluster.Any = true
	}
}
