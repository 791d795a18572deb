package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackagesThatRunTheProgramAreTestedApart(t *testing.T) {
	const module = "github.com/drover-dev/drover/"
	packages := []string{module + "internal/plane", module + "test/docs", module + "test/docs/page", module + "test/e2e"}
	whole, rest := split(packages, runsProgram)
	if diff := cmp.Diff([]string{module + "test/docs", module + "test/e2e"}, whole); diff != "" {
		t.Errorf("packages that run the program (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{module + "internal/plane", module + "test/docs/page"}, rest); diff != "" {
		t.Errorf("other packages (-want +got):\n%s", diff)
	}
}
