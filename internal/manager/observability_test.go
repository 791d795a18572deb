package manager_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/drover-dev/drover/internal/controllers/clusters/measure"
)

// dashboard is the relevant part of a Grafana dashboard.
type dashboard struct {
	Title, UID string
	Panels     []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct{ List []struct{ Name, Type string } }
}

func TestAlertsUseExistingMetrics(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../../observability/alerts.yaml", false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	known := metricsOf(t)
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			t.Run(r.Alert, func(t *testing.T) {
				checkQuery(t, r.Expr, known)
				for _, key := range []string{"summary", "description"} {
					if r.Annotations[key] == "" {
						t.Errorf("it has no %s", key)
					}
				}
				if r.Labels["severity"] == "" || r.For == 0 {
					t.Error("it does not say how bad it is, or goes off at once")
				}
			})
		}
	}
}

func TestDashboardUsesExistingMetrics(t *testing.T) {
	data, err := os.ReadFile("../../observability/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Panels) < 10 || len(d.Templating.List) != 1 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("dashboard %q has %d panels and variables %v", d.Title, len(d.Panels), d.Templating.List)
	}
	known := metricsOf(t)
	ids, places := map[int]bool{}, map[string]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have id %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				at := fmt.Sprintf("%d,%d", x, y)
				if other, taken := places[at]; taken {
					t.Fatalf("panels %q and %q lie on each other at %s", other, p.Title, at)
				}
				places[at] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			by := checkQuery(t, target.Expr, known)
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if l[1] != "instance" && !by[l[1]] {
					t.Errorf("panel %q is labeled by %s, which its query leaves out", p.Title, l[1])
				}
			}
		}
	}
}

// checkQuery returns the labels that the query groups by.
func checkQuery(t *testing.T, query string, known map[string]bool) map[string]bool {
	t.Helper()
	expr, err := parser.ParseExpr(query)
	if err != nil {
		t.Fatalf("query %q: %v", query, err)
	}
	by := map[string]bool{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			for _, l := range n.Grouping {
				by[l] = true
			}
		case *parser.VectorSelector:
			if !known[n.Name] {
				t.Errorf("query %q is of metric %s, which there is not", query, n.Name)
			}
			checkPhases(t, n)
		}
		return nil
	})
	return by
}

// checkPhases finds phases that don't exist.
func checkPhases(t *testing.T, n *parser.VectorSelector) {
	t.Helper()
	for _, m := range n.LabelMatchers {
		if m.Name != "phase" {
			continue
		}
		for _, phase := range strings.Split(m.Value, "|") {
			if !slices.Contains(measure.Phases, phase) {
				t.Errorf("%s is of phase %q, which no cluster is ever in", n, phase)
			}
		}
		if m.Type == labels.MatchNotEqual {
			t.Errorf("%s: say which phases are meant", n)
		}
	}
}

// metricsOf returns the names of all metrics of a started manager.
func metricsOf(t *testing.T) map[string]bool {
	t.Helper()
	_, m := ready(t)
	var body string
	eventually(t, func() (err error) {
		body, err = get("http://"+m.metrics+"/metrics", nil)
		if err == nil && !strings.Contains(body, "\nworkqueue_depth{") {
			err = errors.New("no controller has had any work yet")
		}
		return err
	})
	out := map[string]bool{}
	for _, line := range strings.Split(body, "\n") {
		if name, _, found := strings.Cut(line, "{"); found && !strings.HasPrefix(line, "#") {
			out[name] = true
		} else if name, _, found := strings.Cut(line, " "); found && !strings.HasPrefix(line, "#") {
			out[name] = true
		}
	}
	return out
}
