package catalog

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestMetrosAndFacilities(t *testing.T) {
	for code, want := range map[string]string{"am": "Amsterdam", "AM": "Amsterdam", "local": "This host", "": "", "xx": "", "am6": ""} {
		if m, found := FindMetro(code); m.Name != want || found != (want != "") {
			t.Errorf("metro %q is %q, found: %t", code, m.Name, found)
		}
	}
	for code, want := range map[string]string{
		"ams1": "am", "AMS1": "am", "local1": "local", "am": "", "": "",
		"fra1": "fr", "sin1": "sg", "syd1": "sy", "atl2": "at", "msp1": "ch", "ny2": "ny", "sv5": "sv", "xyz9": "", "ams": "", "ams100": "", "1": "", "am6x": "",
	} {
		if m, found := MetroOf(code); m.Code != want || found != (want != "") {
			t.Errorf("facility %q is in metro %q, found: %t", code, m.Code, found)
		}
	}
}

func TestPlans(t *testing.T) {
	for slug, want := range map[string]string{"c3.small.x86": "c3.small.x86", "baremetal_0": "t1.small.x86", "t1.small": "t1.small.x86", "C3.SMALL.X86": "", "": ""} {
		if p, found := FindPlan(slug); p.Slug != want || found != (want != "") {
			t.Errorf("plan %q is %q, found: %t", slug, p.Slug, found)
		}
	}
	for old, modern := range oldPlans {
		if _, found := FindPlan(old); !found {
			t.Errorf("plan %q stands for %q, which does not exist", old, modern)
		}
	}
}

func TestCatalogIsConsistent(t *testing.T) {
	seen := map[string]bool{}
	once := func(kind, code string) {
		if seen[kind+code] || code != strings.ToLower(code) || code == "" {
			t.Errorf("%s %q is listed twice, or not in lower case", kind, code)
		}
		seen[kind+code] = true
	}
	for _, m := range Metros() {
		once("metro", m.Code)
		if len(m.Facilities) == 0 || m.Name == "" || len(m.Country) != 2 {
			t.Errorf("metro %+v", m)
		}
		for _, f := range m.Facilities {
			once("facility", f)
		}
	}
	for _, p := range Plans() {
		once("plan", p.Slug)
		if p.CPUs < 2 || p.MemoryBytes < 2<<30 {
			t.Errorf("plan %q is too small for a node: %d CPUs, %d bytes", p.Slug, p.CPUs, p.MemoryBytes)
		}
	}
	for _, o := range OperatingSystems() {
		once("system", o.Slug)
		if found, ok := FindOS(o.Slug); !ok || found != o || o.Distro == "" || o.Version == "" {
			t.Errorf("system %+v", o)
		}
	}
}

func TestIDsAreStable(t *testing.T) {
	first := ID("metro", "am")
	if first != ID("metro", "am") || ID("metro", "am") == ID("facility", "am") || ID("metro", "am") == ID("metro", "da") {
		t.Error("an ID does not depend on the kind and the code only")
	}
	if _, err := uuid.Parse(ID("metro", "am")); err != nil {
		t.Error(err)
	}
}
