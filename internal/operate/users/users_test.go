package users

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a management plane without a manager. The API server alone authorizes requests.
type world struct {
	*testing.T
	*Directory
	ns string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.Shared(t, install.Options{WebhookURL: "https://" + kubetest.FreeAddress(t)})
	d, err := Open(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, Directory: d, ns: server.Namespace(t)}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// enter adds a user and returns a client with the kubeconfig of that user.
func (w *world) enter(u User) kubernetes.Interface {
	w.Helper()
	w.must(w.Add(w.Context(), u))
	config, until, err := w.Kubeconfig(w.Context(), u, time.Hour)
	w.must(err)
	if left := time.Until(until); left < 50*time.Minute || left > 70*time.Minute {
		w.Errorf("the token expires in %s, want about an hour", left)
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	w.must(err)
	api, err := kubernetes.NewForConfig(cfg)
	w.must(err)
	return api
}

func (w *world) may(api kubernetes.Interface, verb, group, resource, namespace string) bool {
	w.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace},
	}}
	out, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(w.Context(), review, metav1.CreateOptions{})
	w.must(err)
	return out.Status.Allowed
}

func TestRolesGrantNoMoreThanTheyName(t *testing.T) {
	w := newWorld(t)
	const clusters = "anywhere.eks.amazonaws.com"
	creator := w.enter(User{Namespace: w.ns, Name: "creator", Role: "creator"})
	viewer := w.enter(User{Namespace: w.ns, Name: "viewer", Role: "viewer"})
	for _, tt := range []struct {
		verb, group, resource, namespace string
		creator, viewer                  bool
	}{
		{"create", clusters, "clusters", w.ns, true, false},
		{"list", clusters, "clusters", w.ns, true, true},
		{"create", clusters, "clusters", "default", false, false},
		{"get", "", "secrets", w.ns, false, false},
		{"get", "", "secrets", "eksa-system", false, false},
		{"create", "", "serviceaccounts/token", w.ns, false, false},
	} {
		if got := w.may(creator, tt.verb, tt.group, tt.resource, tt.namespace); got != tt.creator {
			t.Errorf("a creator may %s %s in %s: got %t, want %t", tt.verb, tt.resource, tt.namespace, got, tt.creator)
		}
		if got := w.may(viewer, tt.verb, tt.group, tt.resource, tt.namespace); got != tt.viewer {
			t.Errorf("a viewer may %s %s in %s: got %t, want %t", tt.verb, tt.resource, tt.namespace, got, tt.viewer)
		}
	}
	all, err := w.List(t.Context(), w.ns)
	w.must(err)
	if len(all) != 2 || all[0].Name != "creator" || all[0].Role != "creator" || all[1].Role != "viewer" {
		t.Errorf("got users %+v, want a creator and a viewer", all)
	}
}

func TestUsersKeepAccessUntilRemoved(t *testing.T) {
	w := newWorld(t)
	u := User{Namespace: w.ns + "-new", Name: "creator", Role: "creator"}
	api := w.enter(u)
	again := w.enter(u)
	for _, one := range []kubernetes.Interface{api, again} {
		if !w.may(one, "create", "anywhere.eks.amazonaws.com", "clusters", u.Namespace) {
			t.Error("one of the two kubeconfigs grants no access")
		}
	}
	w.must(w.Remove(t.Context(), u.Namespace, u.Name))
	// API servers cache the authentication of a token for ten seconds.
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := api.CoreV1().Pods(u.Namespace).List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err), nil
	})
	if err != nil {
		t.Errorf("the token is still valid: %v", err)
	}
	if err := w.Remove(t.Context(), u.Namespace, u.Name); err == nil || !strings.Contains(err.Error(), `user "creator" not found`) {
		t.Errorf("removing an unknown user: error %v", err)
	}
}

func TestForeignObjectsAreLeftUnchanged(t *testing.T) {
	w := newWorld(t)
	w.enter(User{Namespace: w.ns, Name: "viewer", Role: "viewer"})
	own := w.api.CoreV1().ServiceAccounts(w.ns)
	account, err := own.Get(t.Context(), "viewer", metav1.GetOptions{})
	w.must(err)
	account.ObjectMeta = metav1.ObjectMeta{Name: "robot"}
	_, err = own.Create(t.Context(), account, metav1.CreateOptions{})
	w.must(err)
	for name, want := range map[string]string{
		"viewer": `user "viewer" in namespace "` + w.ns + `" already has the role viewer`,
		"robot":  "does not belong to a user",
	} {
		if err := w.Add(t.Context(), User{Namespace: w.ns, Name: name, Role: "creator"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("adding %s: error %v, want %q", name, err, want)
		}
	}
	if err := w.Remove(t.Context(), w.ns, "robot"); err == nil {
		t.Error("a foreign ServiceAccount was deleted")
	}
	bindings, err := w.api.RbacV1().RoleBindings(w.ns).List(t.Context(), metav1.ListOptions{})
	w.must(err)
	if len(bindings.Items) != 1 {
		t.Errorf("there are %d bindings, want that of the viewer", len(bindings.Items))
	}
}

func TestCheckReportsInvalidUsers(t *testing.T) {
	for _, tt := range []struct {
		user User
		want []string
	}{
		{User{Namespace: "team-a", Name: "creator", Role: "creator"}, nil},
		{User{Namespace: "Team", Name: "two words", Role: "king"}, []string{`name "two words"`, `namespace "Team"`, `unknown role "king"; use creator or viewer`}},
		{User{Namespace: "eksa-system", Name: "creator", Role: "creator"}, []string{"reserved for the system", `"team-creator"`}},
		{User{Namespace: "kube-public", Name: "viewer", Role: "viewer"}, []string{"reserved for the system"}},
		{User{Namespace: "eksa-packages-dev", Name: "creator", Role: "creator"}, []string{"reserved for the system"}},
	} {
		err := tt.user.Check()
		if (err == nil) != (tt.want == nil) {
			t.Errorf("%+v: %v", tt.user, err)
		}
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %v, want %q", tt.user, err, want)
			}
		}
	}
}
