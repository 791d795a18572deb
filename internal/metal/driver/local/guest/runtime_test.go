package guest

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestRuntimeIsPolledUntilReady(t *testing.T) {
	asked := 0
	awaitAvailable(t.Context(), func() error {
		asked++
		if asked < 3 {
			return status.Error(codes.Unavailable, "server is not initialized yet")
		}
		return status.Error(codes.Internal, "an answer, if no good one")
	})
	if asked != 3 {
		t.Errorf("got %d requests, want 3", asked)
	}
}
