package spec

import (
	"fmt"
	"strings"
)

// Violation is one problem of a spec.
type Violation struct {
	// Path is the field, such as spec.controlPlaneConfiguration.count of the Cluster, or
	// PacketMachineConfig/big: spec.os.
	Path string `json:"path"`
	// Problem says what is wrong.
	Problem string `json:"problem"`
	// Remedy says how to correct it.
	Remedy string `json:"remedy,omitempty"`
}

// String returns the violation on one line.
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

// Violations are all problems of a spec, in the order of the file.
type Violations []Violation //nolint:errname // It is a list, and an error only if it is not empty.

// maxListed bounds how many violations Error lists. More usually have the same cause.
const maxListed = 100

// Error lists the violations, one per line.
func (v Violations) Error() string {
	switch len(v) {
	case 0:
		return "no problems"
	case 1:
		return v[0].String()
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "%d problems found:", len(v))
	for _, one := range v[:min(len(v), maxListed)] {
		fmt.Fprintf(&lines, "\n  - %s", one)
	}
	if len(v) > maxListed {
		fmt.Fprintf(&lines, "\n  and %d more", len(v)-maxListed)
	}
	return lines.String()
}

// Err returns the violations as an error, or nil without any.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return v
}
