package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Name is the name of a bundle: its Kubernetes minor version, its build number, and an optional
// suffix.
type Name struct {
	Major, Minor, Build int
	Rest                string

	// text is the original spelling, with or without the v.
	text string
}

const numbers = 3

// ParseName parses v1-36-4, 1-36-4 and v1-36-4-suffix.
func ParseName(s string) (Name, error) {
	parts := strings.SplitN(strings.TrimPrefix(s, "v"), "-", numbers+1)
	invalid := fmt.Errorf("Invalid bundle name (should be in the format vx-xx-xxxx where x is a digit): %s", s) //nolint:staticcheck // existing scripts match this text
	if len(parts) < numbers {
		return Name{}, invalid
	}
	n := Name{text: s}
	for i, to := range []*int{&n.Major, &n.Minor, &n.Build} {
		number, ok := number(parts[i])
		if !ok {
			return Name{}, invalid
		}
		*to = number
	}
	if len(parts) > numbers {
		n.Rest = parts[numbers]
	}
	return n, nil
}

// number parses digits, without the sign that the standard library accepts.
func number(s string) (int, bool) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// Compare returns a negative number if n is older than other.
func (n Name) Compare(other Name) int {
	return cmp.Or(
		cmp.Compare(n.Major, other.Major), cmp.Compare(n.Minor, other.Minor), cmp.Compare(n.Build, other.Build), cmp.Compare(n.Rest, other.Rest),
	)
}

// String returns the name in its original spelling.
func (n Name) String() string {
	if n.text != "" {
		return n.text
	}
	s := fmt.Sprintf("v%d-%d-%d", n.Major, n.Minor, n.Build)
	if n.Rest != "" {
		s += "-" + n.Rest
	}
	return s
}

// Kubernetes returns the Kubernetes minor version of the bundle, such as 1.36.
func (n Name) Kubernetes() string { return fmt.Sprintf("%d.%d", n.Major, n.Minor) }

// LatestTag returns the tag of the newest bundle for the same Kubernetes minor version.
func (n Name) LatestTag() string { return fmt.Sprintf("v%d-%d-latest", n.Major, n.Minor) }

// kubernetesMinor matches minor versions, including the plus that some servers append.
var kubernetesMinor = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})\+?$`)

// LatestTag returns the tag of the newest bundle for a Kubernetes minor version: v1-36-latest for
// 1.36.
func LatestTag(kubernetes string) (string, error) {
	found := kubernetesMinor.FindStringSubmatch(kubernetes)
	if found == nil {
		return "", errors.New("please specify kube-version as <major>.<minor>")
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	return Name{Major: major, Minor: minor}.LatestTag(), nil
}
