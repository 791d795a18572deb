package webhookcert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/config"
)

// Paths of the targets. CRDs are found by label, the two webhook configurations by name, since the
// manager may read no others.
const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	mutatingPath    = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	validatingPath  = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
)

// target is the relevant part of a CRD or a webhook configuration. CRDs are large; decoding only
// this part saves memory.
type target struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Conversion struct {
			Strategy string `json:"strategy"`
			Webhook  struct {
				ClientConfig clientConfig `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
	} `json:"spec"`

	Webhooks []struct {
		Name         string       `json:"name"`
		ClientConfig clientConfig `json:"clientConfig"`
	} `json:"webhooks"`
}

type clientConfig struct {
	CABundle []byte `json:"caBundle"`
}

// patch returns the smallest change that sets the bundle, or nil if it is set. It checks the name
// at each list position, so that a patch never affects another webhook.
func (t *target) patch(bundle []byte) ([]byte, error) {
	if t.Webhooks == nil {
		return t.conversionPatch(bundle)
	}
	var ops []operation
	for i, w := range t.Webhooks {
		if bytes.Equal(w.ClientConfig.CABundle, bundle) {
			continue
		}
		at := fmt.Sprintf("/webhooks/%d", i)
		ops = append(ops, operation{"test", at + "/name", w.Name}, operation{"add", at + "/clientConfig/caBundle", bundle})
	}
	if ops == nil {
		return nil, nil
	}
	return json.Marshal(ops)
}

func (t *target) conversionPatch(bundle []byte) ([]byte, error) {
	conversion := t.Spec.Conversion
	if conversion.Strategy != "Webhook" || bytes.Equal(conversion.Webhook.ClientConfig.CABundle, bundle) {
		return nil, nil
	}
	return json.Marshal([]operation{{"add", "/spec/conversion/webhook/clientConfig/caBundle", bundle}})
}

// operation is one entry of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (i *injector) definitions(ctx context.Context) ([]target, error) {
	list := struct {
		Items []target `json:"items"`
	}{}
	request := i.rest.Get().AbsPath(definitionsPath).Param("labelSelector", config.LabelInjectCA+"=true")
	if err := send(ctx, request, &list); err != nil {
		return nil, fmt.Errorf("listing CRDs: %w", err)
	}
	return list.Items, nil
}

func (i *injector) get(ctx context.Context, path string) (*target, error) {
	t := &target{}
	if err := send(ctx, i.rest.Get().AbsPath(path), t); err != nil {
		return nil, err
	}
	return t, nil
}

// write sends the patch and returns the resulting target.
func (i *injector) write(ctx context.Context, path string, patch []byte) (*target, error) {
	t := &target{}
	request := i.rest.Patch(types.JSONPatchType).AbsPath(path).Param("fieldManager", fieldManager).Body(patch)
	if err := send(ctx, request, t); err != nil {
		return nil, err
	}
	return t, nil
}

// send decodes the response itself, as the client would require whole objects.
func send(ctx context.Context, request *rest.Request, into any) error {
	data, err := request.DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
