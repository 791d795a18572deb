// Package catalog holds what can be ordered and where: metros, facilities,
// plans and operating systems, by the names that people's manifests use. It
// is data and lookups; it knows no device. Start with FindPlan.
package catalog

import (
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Metro is a city, with the facilities in it; the first is the default.
type Metro struct {
	Code, Name, Country string
	Facilities          []string
}

// Plan is a kind of machine and the size it has here.
type Plan struct {
	Slug, Name  string
	Class, Line string
	Legacy      bool
	CPUs        int
	MemoryBytes int64
}

// OS is an operating system that can be asked for.
type OS struct {
	Slug, Name, Distro, Version string
}

// CustomIPXE is the operating system that boots what the user serves.
const CustomIPXE = "custom_ipxe"

// namespace makes ids that are the same on every installation.
var namespace = uuid.MustParse("6f0ed6a4-7c0f-5a64-9e0c-0f6dbd3f6a11")

// ID is the stable id of a thing of the catalog.
func ID(kind, code string) string { return uuid.NewSHA1(namespace, []byte(kind+"/"+code)).String() }

// Metros returns all metros.
func Metros() []Metro { return metros }

// Plans returns all plans.
func Plans() []Plan { return plans }

// OperatingSystems returns all operating systems.
func OperatingSystems() []OS { return systems }

// FindMetro finds a metro by its code, in any case.
func FindMetro(code string) (Metro, bool) {
	return find(metros, func(m Metro) bool { return strings.EqualFold(m.Code, code) })
}

// MetroOf finds the metro that a facility is in.
func MetroOf(facility string) (Metro, bool) {
	return find(metros, func(m Metro) bool { return slices.Contains(m.Facilities, strings.ToLower(facility)) })
}

// FindPlan finds a plan by slug, also by the names of the first generation.
func FindPlan(slug string) (Plan, bool) {
	if modern, ok := oldPlans[slug]; ok {
		slug = modern
	}
	return find(plans, func(p Plan) bool { return p.Slug == slug })
}

// FindOS finds an operating system by slug.
func FindOS(slug string) (OS, bool) {
	return find(systems, func(o OS) bool { return o.Slug == slug })
}

func find[T any](list []T, match func(T) bool) (T, bool) {
	if i := slices.IndexFunc(list, match); i >= 0 {
		return list[i], true
	}
	var none T
	return none, false
}
