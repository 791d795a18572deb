package spec

import (
	"fmt"
	"strings"
)

// Violation is one thing that is wrong.
type Violation struct {
	// Path is where: spec.controlPlaneConfiguration.count if it is in the Cluster, and else PacketMachineConfig/big: spec.os.
	Path string
	// Problem is what.
	Problem string
	// Remedy is what to do about it.
	Remedy string
}

// String is the violation on one line.
func (v Violation) String() string {
	text := v.Problem
	if v.Path != "" {
		text = v.Path + ": " + text
	}
	if v.Remedy != "" {
		text += " (" + v.Remedy + ")"
	}
	return text
}

// Violations are all things that are wrong, in the order of the file. There are none if it is empty.
type Violations []Violation //nolint:errname // It is a list first, and an error where there is something in it.

// most is how many violations are listed. Whoever has more has them for the same reason.
const most = 100

// Error lists them. One is a line; more are a line each.
func (v Violations) Error() string {
	switch len(v) {
	case 0:
		return "nothing is wrong"
	case 1:
		return v[0].String()
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "%d things are wrong:", len(v))
	for _, one := range v[:min(len(v), most)] {
		fmt.Fprintf(&lines, "\n  - %s", one)
	}
	if len(v) > most {
		fmt.Fprintf(&lines, "\n  and %d more", len(v)-most)
	}
	return lines.String()
}

// Err returns the violations as an error, nil if there are none.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return v
}
