package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Name is that of a bundle: the Kubernetes minor that it is for, and its number among those. What follows is free.
type Name struct {
	Major, Minor, Build int
	Rest                string

	// text is how it was written, with the v or without.
	text string
}

const numbers = 3

// ParseName takes v1-36-4, 1-36-4 and v1-36-4-anything.
func ParseName(s string) (Name, error) {
	parts := strings.SplitN(strings.TrimPrefix(s, "v"), "-", numbers+1)
	invalid := fmt.Errorf("Invalid bundle name (should be in the format vx-xx-xxxx where x is a digit): %s", s) //nolint:staticcheck // Scripts know these words.
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

// number takes digits only, where the standard library would take a sign as well.
func number(s string) (int, bool) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// Compare is below zero if n is the earlier one.
func (n Name) Compare(other Name) int {
	return cmp.Or(
		cmp.Compare(n.Major, other.Major), cmp.Compare(n.Minor, other.Minor), cmp.Compare(n.Build, other.Build), cmp.Compare(n.Rest, other.Rest),
	)
}

// String is the name as it was written.
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

// Kubernetes is the minor that the bundle is for, such as 1.36.
func (n Name) Kubernetes() string { return fmt.Sprintf("%d.%d", n.Major, n.Minor) }

// LatestTag is the one that moves with the newest bundle for the same minor.
func (n Name) LatestTag() string { return fmt.Sprintf("v%d-%d-latest", n.Major, n.Minor) }

// kubernetesMinor takes what people write, and what servers say: some of them add a plus.
var kubernetesMinor = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})\+?$`)

// LatestTag is the tag of the newest bundle for a Kubernetes minor: v1-36-latest for 1.36.
func LatestTag(kubernetes string) (string, error) {
	found := kubernetesMinor.FindStringSubmatch(kubernetes)
	if found == nil {
		return "", errors.New("please specify kube-version as <major>.<minor>")
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	return Name{Major: major, Minor: minor}.LatestTag(), nil
}
