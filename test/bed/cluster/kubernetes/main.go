// Command kubernetes is every program of a Kubernetes cluster in one binary: etcd, the control plane and what runs on
// a node, as subcommands that take the flags of the original programs. It is linked from the published Go modules, so
// a test cluster needs neither a container registry nor a release download. go.mod is that of the newest Kubernetes that
// the product supports, oldest.mod that of the oldest.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	// Each entry constructs its command only when it is chosen: two constructed commands in one process panic, because
	// both install the process-wide signal handler.
	programs := map[string]func([]string) int{
		"etcd":                    runEtcd,
		"kube-apiserver":          run(apiserver.NewAPIServerCommand),
		"kube-controller-manager": run(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          run(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kube-proxy":              run(proxy.NewProxyCommand),
		"kubelet":                 run(func() *cobra.Command { return kubeletCommand(kubelet.NewKubeletCommand) }),
	}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		names := slices.Sorted(maps.Keys(programs))
		fmt.Fprintf(os.Stderr, "usage: %s %s [flag]...\n", os.Args[0], strings.Join(names, "|"))
		os.Exit(2)
	}
	os.Exit(programs[os.Args[1]](os.Args[1:]))
}

func run(construct func() *cobra.Command) func([]string) int {
	return func(arguments []string) int {
		command := construct()
		command.SetArgs(arguments[1:])
		return cli.Run(command)
	}
}

// kubeletCommand calls kubelet's constructor: that of Kubernetes 1.31 takes no context.
func kubeletCommand(construct any) *cobra.Command {
	if older, ok := construct.(func() *cobra.Command); ok {
		return older()
	}
	return construct.(func(context.Context) *cobra.Command)(context.Background())
}

func runEtcd(arguments []string) int {
	etcdmain.Main(arguments)
	return 0
}
