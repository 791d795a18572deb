package guest

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	runtimeSocket  = "unix:///run/containerd/containerd.sock"
	runtimeTimeout = time.Minute
	runtimeLook    = 100 * time.Millisecond
)

// awaitRuntime waits until containerd serves the kubelet's interface, some time after it reports
// readiness. On a busy host that takes seconds, and kubeadm fails immediately without it. kubeadm
// reports other problems better.
func awaitRuntime() {
	ctx, cancel := context.WithTimeout(context.Background(), runtimeTimeout)
	defer cancel()
	conn, err := grpc.NewClient(runtimeSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer conn.Close()
	awaitAvailable(ctx, func() error {
		return conn.Invoke(ctx, "/runtime.v1.RuntimeService/Status", &emptypb.Empty{}, &emptypb.Empty{})
	})
}

// awaitAvailable polls until there is any response.
func awaitAvailable(ctx context.Context, ask func() error) {
	for status.Code(ask()) == codes.Unavailable {
		select {
		case <-ctx.Done():
			return
		case <-time.After(runtimeLook):
		}
	}
}
