package capi

import (
	"net"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestCompressedMessagesOfEtcdAreBounded answers the first request of upstream's etcd client with
// compressed zeros.
func TestCompressedMessagesOfEtcdAreBounded(t *testing.T) {
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := grpc.SetSendCompressor(stream.Context(), "gzip"); err != nil {
			return err
		}
		return stream.SendMsg(wrapperspb.Bytes(make([]byte, 64*maxMessage)))
	}))
	t.Cleanup(server.Stop)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = server.Serve(listener) }()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{listener.Addr().String()}})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = c.Status(t.Context(), listener.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("got error %v, want one that contains %q", err, "larger than 1048576 bytes")
	}
}
