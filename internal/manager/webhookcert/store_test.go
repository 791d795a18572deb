package webhookcert

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stopped fails as the client of a manager that is being stopped.
type stopped struct{ client.Client }

func (stopped) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return context.Canceled
}

func TestCanceledRequestsAreNotTakenForSuccess(t *testing.T) {
	m, _, err := store{client: stopped{}}.settle(t.Context(), time.Now(), nil, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("certificates are %v, error is %v", m, err)
	}
}
