// Package catalog lists what can be ordered and where: metros, facilities, plans and operating
// systems, by the names that existing manifests use. It contains only data and lookups. Start with
// FindPlan.
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

// Plan is a type of machine and its size on this host.
type Plan struct {
	Slug, Name  string
	Class, Line string
	Legacy      bool
	CPUs        int
	MemoryBytes int64
	DiskBytes   int64
}

// OS is an operating system that can be ordered.
type OS struct {
	Slug, Name, Distro, Version string
}

// CustomIPXE is the operating system that boots from an iPXE script of the user.
const CustomIPXE = "custom_ipxe"

// namespace makes IDs that are the same in every installation.
var namespace = uuid.MustParse("6f0ed6a4-7c0f-5a64-9e0c-0f6dbd3f6a11")

// ID returns the stable ID of an item of the catalog.
func ID(kind, code string) string { return uuid.NewSHA1(namespace, []byte(kind+"/"+code)).String() }

// Metros returns all metros.
func Metros() []Metro { return metros }

// Plans returns all plans.
func Plans() []Plan { return plans }

// OperatingSystems returns all operating systems.
func OperatingSystems() []OS { return systems }

// FindMetro returns a metro by its code, ignoring case.
func FindMetro(code string) (Metro, bool) {
	return find(metros, func(m Metro) bool { return strings.EqualFold(m.Code, code) })
}

// MetroOf returns the metro of a facility. Facilities are named after their metro or the nearest
// airport, with a number: those that are not listed are known by that form, since Packet closed and
// renamed many.
func MetroOf(facility string) (Metro, bool) {
	facility = strings.ToLower(facility)
	if m, found := find(metros, func(m Metro) bool { return slices.Contains(m.Facilities, facility) }); found {
		return m, true
	}
	place := strings.TrimRight(facility, "0123456789")
	if digits := len(facility) - len(place); digits < 1 || digits > 2 {
		return Metro{}, false
	}
	if code, found := airports[place]; found {
		place = code
	}
	return FindMetro(place)
}

// DeploymentTypes returns how machines of a plan can be ordered. Plans of this host have no
// counterpart on Packet's spot market.
func (p Plan) DeploymentTypes() []string {
	if strings.HasPrefix(p.Slug, "local.") {
		return []string{"on_demand"}
	}
	return []string{"on_demand", "spot_market"}
}

// FindPlan returns a plan by its current or first-generation slug.
func FindPlan(slug string) (Plan, bool) {
	if modern, ok := oldPlans[slug]; ok {
		slug = modern
	}
	return find(plans, func(p Plan) bool { return p.Slug == slug })
}

// FindOS returns an operating system by its slug.
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
