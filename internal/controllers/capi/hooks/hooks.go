// Package hooks serves the runtime hooks of Cluster API inside this process. Upstream calls the
// hooks of servers that ExtensionConfigs name; here a handler is a function, and there are no
// ExtensionConfigs. A hook without a handler is answered as upstream answers without extensions.
// Start with Serve.
package hooks

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
)

// extension is the name of the only extension of every hook, which logs and errors show.
const extension = "drover"

// Client calls handlers. It implements the runtime client of Cluster API.
type Client struct{ handlers map[string]handler }

var _ runtimeclient.Client = (*Client)(nil)

type handler struct {
	applies func(client.Object) bool
	call    func(context.Context, runtimehooksv1.RequestObject, runtimehooksv1.ResponseObject) error
}

// New returns a client without handlers.
func New() *Client { return &Client{handlers: map[string]handler{}} }

// Hook is a handler of a hook.
type Hook[Request runtimehooksv1.RequestObject, Response runtimehooksv1.ResponseObject] struct {
	// Of is the hook, a function of the package of upstream's hooks.
	Of func(Request, Response)
	// Applies reports whether the hook is called for an object; nil means always. Upstream continues
	// without it as if there were no extension.
	Applies func(client.Object) bool
	// Call responds to a request. An error lets upstream try again, and never continue without it.
	Call func(ctx context.Context, request Request, response Response) error
}

// Serve adds the handler of a hook. Each hook has one at most, and all are added before the manager
// starts.
func Serve[Request runtimehooksv1.RequestObject, Response runtimehooksv1.ResponseObject](c *Client, h Hook[Request, Response]) {
	name := runtimecatalog.HookName(h.Of)
	c.handlers[name] = handler{
		applies: func(o client.Object) bool { return h.Applies == nil || h.Applies(o) },
		call: func(ctx context.Context, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
			in, ok := request.(Request)
			out, fits := response.(Response)
			if !ok || !fits {
				return fmt.Errorf("calling hook %q: unexpected request %T and response %T", name, request, response)
			}
			if err := h.Call(ctx, in, out); err != nil {
				return err
			}
			out.SetStatus(runtimehooksv1.ResponseStatusSuccess)
			return nil
		},
	}
}

// GetAllExtensions implements the runtime client.
func (c *Client) GetAllExtensions(_ context.Context, hook runtimecatalog.Hook, forObject client.Object) ([]string, error) {
	if h, served := c.handlers[runtimecatalog.HookName(hook)]; served && h.applies(forObject) {
		return []string{extension}, nil
	}
	return nil, nil
}

// CallAllExtensions implements the runtime client.
func (c *Client) CallAllExtensions(ctx context.Context, hook runtimecatalog.Hook, forObject client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
	h, served := c.handlers[runtimecatalog.HookName(hook)]
	if !served || !h.applies(forObject) {
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
		return nil
	}
	return h.call(ctx, request, response)
}

// CallExtension implements the runtime client.
func (c *Client) CallExtension(ctx context.Context, hook runtimecatalog.Hook, _ client.Object, name string, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject, _ ...runtimeclient.CallExtensionOption) error { //nolint:revive // of the interface
	h, served := c.handlers[runtimecatalog.HookName(hook)]
	if !served || name != extension {
		return fmt.Errorf("calling hook %q: extension %q not found", runtimecatalog.HookName(hook), name)
	}
	return h.call(ctx, request, response)
}

// WarmUp implements the runtime client.
func (*Client) WarmUp(*runtimev1.ExtensionConfigList) error { return nil }

// IsReady implements the runtime client.
func (*Client) IsReady() bool { return true }

// Discover implements the runtime client.
func (*Client) Discover(_ context.Context, c *runtimev1.ExtensionConfig) (*runtimev1.ExtensionConfig, error) {
	return nil, unsupported(c)
}

// Register implements the runtime client.
func (*Client) Register(c *runtimev1.ExtensionConfig) error { return unsupported(c) }

// Unregister implements the runtime client.
func (*Client) Unregister(*runtimev1.ExtensionConfig) error { return nil }

func unsupported(c *runtimev1.ExtensionConfig) error {
	return fmt.Errorf("ExtensionConfig %q is not supported: Drover serves the hooks of Cluster API itself", c.Name)
}
