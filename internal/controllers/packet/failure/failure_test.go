package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/client"
)

func TestWait(t *testing.T) {
	rejected := func(kind client.Kind, status int) *client.Error {
		return &client.Error{Kind: kind, Status: status, Messages: []string{"No"}, After: 7 * time.Second}
	}
	for name, tt := range map[string]struct {
		err  error
		want *reconcile.Wait
	}{
		"no error":          {nil, nil},
		"an error of ours":  {errors.New("disk full"), nil},
		"missing Secret":    {&access.Error{Problem: `Secret "s" not found`}, &reconcile.Wait{Reason: infrav1.CredentialsInvalidReason, Message: `Secret "s" not found`, After: afterCredentials}},
		"rate limit":        {rejected(client.RateLimited, 429), &reconcile.Wait{Reason: infrav1.APIRateLimitedReason, Message: "Ordering a device failed: No (HTTP 429)", After: 7 * time.Second}},
		"no capacity":       {rejected(client.Capacity, 422), &reconcile.Wait{Reason: infrav1.InsufficientCapacityReason, Message: "Ordering a device failed: No (HTTP 422)", After: afterCapacity}},
		"quota":             {rejected(client.Quota, 422), &reconcile.Wait{Reason: infrav1.QuotaExceededReason, Message: "Ordering a device failed: No (HTTP 422)", After: afterRejection}},
		"invalid":           {rejected(client.Invalid, 422), &reconcile.Wait{Reason: infrav1.InvalidSpecReason, Message: "Ordering a device failed: No (HTTP 422)", After: afterRejection}},
		"unauthorized":      {rejected(client.Unauthorized, 401), &reconcile.Wait{Reason: infrav1.CredentialsInvalidReason, Message: "Ordering a device failed: No (HTTP 401)", After: afterCredentials}},
		"forbidden":         {rejected(client.Forbidden, 403), &reconcile.Wait{Reason: infrav1.CredentialsInvalidReason, Message: "Ordering a device failed: No (HTTP 403)", After: afterCredentials}},
		"busy":              {rejected(client.Busy, 422), &reconcile.Wait{Reason: infrav1.APIUnavailableReason, Message: "Ordering a device failed: No (HTTP 422)", After: afterBusy}},
		"unknown outcome":   {&client.Error{Kind: client.UnknownOutcome, Err: context.DeadlineExceeded}, &reconcile.Wait{Reason: infrav1.APIUnavailableReason, Message: "Ordering a device failed: no response in time", After: afterUnknown}},
		"wrapped not found": {fmt.Errorf("reading: %w", rejected(client.NotFound, 404)), &reconcile.Wait{Reason: infrav1.APIUnavailableReason, Message: "Ordering a device failed: No (HTTP 404)", After: afterUnavailable}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Wait("ordering a device", tt.err)); diff != "" {
				t.Errorf("wait (-want +got):\n%s", diff)
			}
			if tt.want != nil && !IsReason(tt.want.Reason) {
				t.Errorf("%s is not the reason of a failed request", tt.want.Reason)
			}
		})
	}
	if IsReason(infrav1.WaitingForBootstrapDataReason) {
		t.Error("a wait for Cluster API counts as a failed request")
	}
}

func TestMessagesOfTheAPIAreBounded(t *testing.T) {
	err := &client.Error{Kind: client.Invalid, Status: 422, Messages: []string{strings.Repeat("é", 5000)}}
	if got := Wait("ordering a device", err).Message; len(got) > maxMessage || !strings.HasSuffix(got, "é…") {
		t.Errorf("a message of %d bytes that ends with %q", len(got), got[len(got)-6:])
	}
}

func TestInconclusive(t *testing.T) {
	for reason, want := range map[string]bool{
		infrav1.APIUnavailableReason:       true,
		infrav1.APIRateLimitedReason:       true,
		infrav1.CredentialsInvalidReason:   true,
		infrav1.InsufficientCapacityReason: false,
		infrav1.InvalidSpecReason:          false,
		infrav1.InstanceNotFoundReason:     false,
	} {
		if got := Inconclusive(&reconcile.Wait{Reason: reason}); got != want {
			t.Errorf("Inconclusive(%s) = %t, want %t", reason, got, want)
		}
	}
}

func TestStep(t *testing.T) {
	ours := errors.New("disk full")
	wait := &reconcile.Wait{Reason: "R", Message: "M"}
	for name, tt := range map[string]struct{ err, want error }{
		"success":          {nil, nil},
		"an error of ours": {ours, ours},
		"a wait":           {wait, wait},
		"no capacity": {
			&client.Error{Kind: client.Capacity, Status: 422, Messages: []string{"Full"}},
			&reconcile.Wait{Reason: infrav1.InsufficientCapacityReason, Message: "Ordering a device failed: Full (HTTP 422)", After: afterCapacity},
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := Step("ordering a device", func(context.Context, int) error { return tt.err })
			got := step.Run(t.Context(), 0)
			if want := reconcile.AsWait(tt.want); want != nil {
				if diff := cmp.Diff(want, reconcile.AsWait(got)); diff != "" {
					t.Errorf("wait (-want +got):\n%s", diff)
				}
			} else if !errors.Is(got, tt.want) || (got == nil) != (tt.want == nil) {
				t.Errorf("error %v, want %v", got, tt.want)
			}
			if step.Doing != "ordering a device" {
				t.Errorf("Doing is %q", step.Doing)
			}
		})
	}
}
