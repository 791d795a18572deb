package spec_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// source derives values from bytes, and empty ones when they are used up.
type source struct{ data []byte }

func (s *source) next() int {
	if len(s.data) == 0 {
		return 0
	}
	first := s.data[0]
	s.data = s.data[1:]
	return int(first)
}

// words are typical strings of specs. Others come from the bytes.
var words = []string{
	"1.36", "1.35", "cilium", "RollingUpdate", "192.168.0.0/16", "md-0", "a", "true", "DockerDatacenterConfig", "PacketMachineConfig", "OIDCConfig", "v0.25.0",
}

func (s *source) text() string {
	n := s.next()
	if n < len(words) {
		return words[n]
	}
	n = min(n%24, len(s.data))
	text := strings.ToValidUTF8(string(s.data[:n]), "?")
	s.data = s.data[n:]
	return text
}

// fill sets a value from the bytes.
func (s *source) fill(v reflect.Value) {
	if s.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if s.next()%2 == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			s.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			s.fill(v.Field(i))
		}
	case reflect.Slice:
		n := s.next() % 3
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			s.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range s.next() % 3 {
			v.SetMapIndex(reflect.ValueOf(s.text()), reflect.ValueOf(s.text()))
		}
	case reflect.String:
		v.SetString(s.text())
	case reflect.Bool:
		v.SetBool(s.next()%2 == 1)
	default:
		v.SetInt(int64(s.next()) - 2)
	}
}

// special sets types with their own encoding.
func (s *source) special(v reflect.Value) bool {
	switch v.Interface().(type) {
	case *metav1.Time:
	case metav1.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: time.Duration(s.next()-2) * time.Second}))
	case intstr.IntOrString:
		value := intstr.FromInt32(int32(s.next()))
		if s.next()%2 == 1 {
			value = intstr.FromString(s.text())
		}
		v.Set(reflect.ValueOf(value))
	case runtime.RawExtension:
		data, err := json.Marshal(map[string]any{s.text(): s.text(), "maxPods": s.next()})
		if err != nil {
			panic(err)
		}
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: data}))
	default:
		return false
	}
	return true
}
