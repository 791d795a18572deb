package encryption

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
)

// decoder reads configurations as API servers do.
var decoder = sync.OnceValue(func() runtime.Decoder {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme).UniversalDecoder()
})

// check returns why API servers would not start with a configuration. Its errors contain no keys.
func check(text []byte) error {
	var config apiserver.EncryptionConfiguration
	if err := runtime.DecodeInto(decoder(), text, &config); err != nil {
		return errors.New("decoding the encryption configuration failed")
	}
	for _, problem := range validation.ValidateEncryptionConfiguration(&config, false) {
		return fmt.Errorf("API servers reject the encryption configuration: %s: %s", problem.Field, problem.Detail)
	}
	return nil
}
