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

// awaitRuntime waits until containerd serves the kubelet's interface, which it
// does some time after it says that it is up; on a busy host that may be seconds,
// and kubeadm gives up at once. What goes wrong beyond that, kubeadm tells better.
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

// awaitAvailable asks until somebody is there to answer, whatever the answer.
func awaitAvailable(ctx context.Context, ask func() error) {
	for status.Code(ask()) == codes.Unavailable {
		select {
		case <-ctx.Done():
			return
		case <-time.After(runtimeLook):
		}
	}
}
