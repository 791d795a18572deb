package admission

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

// repository rejects URLs that are neither https nor oci, and http unless it is allowed. It never
// repeats the URL, which may contain a password.
func repository(path *field.Path, text string, plainHTTP bool) field.ErrorList {
	reject := func(why string) field.ErrorList {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, why)}
	}
	u, err := url.ParseRequestURI(text)
	switch {
	case err != nil || u.Hostname() == "":
		return reject("must be a URL such as https://charts.example.com or oci://registry.example.com/charts")
	case u.Scheme == "https", strings.HasPrefix(text, "oci://"):
		return nil
	case u.Scheme == "http" && plainHTTP:
		return nil
	case u.Scheme == "http":
		return reject("http:// requires the manager flag --allow-plain-http")
	default:
		return reject("must start with https:// or oci://")
	}
}

// immutableURL rejects a change without repeating the URL.
func immutableURL(path *field.Path, was, is string) field.ErrorList {
	if was == is {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "field is immutable")}
}

func selector(path *field.Path, s *metav1.LabelSelector) field.ErrorList {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

// rollout rejects waves without criteria, and invalid numbers.
func rollout(path *field.Path, r *addonsv1.Rollout) field.ErrorList {
	if r == nil {
		return nil
	}
	var problems field.ErrorList
	for i, w := range r.Waves {
		at := path.Child("waves").Index(i)
		if w.ClusterSelector == nil && w.Size == nil {
			problems = append(problems, field.Required(at, "set clusterSelector, size or both"))
		}
		if w.ClusterSelector != nil {
			problems = append(problems, selector(at.Child("clusterSelector"), w.ClusterSelector)...)
		}
		problems = append(problems, count(at.Child("size"), w.Size)...)
	}
	problems = append(problems, count(path.Child("maxUnavailable"), r.MaxUnavailable)...)
	if r.PauseAfter != nil && *r.PauseAfter < 1 {
		problems = append(problems, field.Invalid(path.Child("pauseAfter"), *r.PauseAfter, "must be at least 1"))
	}
	if r.Soak != nil && r.Soak.Duration < 0 {
		problems = append(problems, field.Invalid(path.Child("soak"), r.Soak.Duration.String(), "must not be negative"))
	}
	return problems
}

// count rejects what is neither a positive number nor a percentage.
func count(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	if v == nil {
		return nil
	}
	good := v.Type == intstr.Int && v.IntVal > 0
	if digits, ok := strings.CutSuffix(v.StrVal, "%"); ok && v.Type == intstr.String {
		n, err := strconv.Atoi(digits)
		good = err == nil && n > 0 && n <= 100
	}
	if good {
		return nil
	}
	return field.ErrorList{field.Invalid(path, v.String(), "must be a positive number or a percentage from 1% to 100%")}
}

// pointer matches a JSON pointer to a field.
var pointer = regexp.MustCompile(`^(/([^/~]|~0|~1)+)+$`)

func drift(path *field.Path, d *addonsv1.Drift) field.ErrorList {
	if d == nil {
		return nil
	}
	var problems field.ErrorList
	for i, rule := range d.Ignore {
		at := path.Child("ignore").Index(i).Child("paths")
		if len(rule.Paths) == 0 {
			problems = append(problems, field.Required(at, "list at least one field"))
		}
		for j, p := range rule.Paths {
			if !pointer.MatchString(p) {
				problems = append(problems, field.Invalid(at.Index(j), p, "must be a JSON pointer such as /spec/replicas; escape / and ~ as ~1 and ~0"))
			}
		}
	}
	return problems
}

// stage rejects an unknown stage of Kubernetes upgrades.
func stage(o metav1.Object) field.ErrorList {
	value, ok := o.GetAnnotations()[addonsv1.UpgradeStageAnnotation]
	if _, known := lockstep.ParseStage(value); !ok || known {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(addonsv1.UpgradeStageAnnotation)
	return field.ErrorList{field.NotSupported(path, value, append(slices.Clone(lockstep.Stages), addonsv1.NoStage))}
}

// changedStage rejects a change to an unknown stage. One that exists already must not keep the
// object from being updated, for example by a controller.
func changedStage(was, is metav1.Object) field.ErrorList {
	before, had := was.GetAnnotations()[addonsv1.UpgradeStageAnnotation]
	after, has := is.GetAnnotations()[addonsv1.UpgradeStageAnnotation]
	if before == after && had == has {
		return nil
	}
	return stage(is)
}

// health rejects expressions that don't compile or that don't evaluate to a boolean.
func health(path *field.Path, checks []addonsv1.HealthCheck) field.ErrorList {
	if len(checks) == 0 {
		return nil
	}
	env, err := objects.Expressions()
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	var problems field.ErrorList
	for i, c := range checks {
		problems = append(problems, expression(env, path.Index(i).Child("current"), c.Current)...)
		if c.Failed != "" {
			problems = append(problems, expression(env, path.Index(i).Child("failed"), c.Failed)...)
		}
	}
	return problems
}

func expression(env *cel.Env, path *field.Path, text string) field.ErrorList {
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	if out := ast.OutputType(); !out.IsEquivalentType(cel.BoolType) && !out.IsEquivalentType(cel.DynType) {
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf("must evaluate to a boolean, not %s", out))}
	}
	return nil
}

// rejectCycles rejects dependency cycles. A dependency that doesn't exist yet is accepted.
func rejectCycles(path *field.Path, name string, edges map[string][]string) field.ErrorList {
	var problems field.ErrorList
	for i, next := range edges[name] {
		if route := pathTo(name, next, edges, map[string]bool{}); route != nil {
			cycle := append([]string{name}, route...)
			problems = append(problems, field.Invalid(path.Index(i), next, "dependency cycle: "+strings.Join(cycle, " depends on ")))
		}
	}
	return problems
}

// pathTo returns the path from a name to the goal, or nil.
func pathTo(goal, from string, edges map[string][]string, seen map[string]bool) []string {
	if from == goal {
		return []string{goal}
	}
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, next := range edges[from] {
		if path := pathTo(goal, next, edges, seen); path != nil {
			return slices.Insert(path, 0, from)
		}
	}
	return nil
}
