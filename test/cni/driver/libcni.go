package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/version"
)

type libcniLibrary struct {
	cni  *libcni.CNIConfig
	list *libcni.NetworkConfigList
	exec *recorder
}

func openLibcni(scenario scenario) (library, error) {
	list, err := libcni.NetworkConfFromBytes(scenario.Configuration)
	if err != nil {
		return nil, err
	}
	exec := &recorder{DefaultExec: invoke.DefaultExec{
		RawExec:       &invoke.RawExec{},
		PluginDecoder: version.PluginDecoder{},
	}}
	cni := libcni.NewCNIConfigWithCacheDir(scenario.PluginFolders, scenario.CacheFolder, exec)
	return &libcniLibrary{cni: cni, list: list, exec: exec}, nil
}

func (l *libcniLibrary) run(ctx context.Context, step step) (any, error) {
	l.exec.executions = []string{}
	switch step.Command {
	case "ADD":
		result, err := l.cni.AddNetworkList(ctx, l.list, runtimeConf(step))
		if err != nil {
			return nil, err
		}
		return result, nil
	case "CHECK":
		return nil, l.cni.CheckNetworkList(ctx, l.list, runtimeConf(step))
	case "DEL":
		return nil, l.cni.DelNetworkList(ctx, l.list, runtimeConf(step))
	case "GC":
		return nil, l.cni.GCNetworkList(ctx, l.list, &libcni.GCArgs{ValidAttachments: step.ValidAttachments})
	case "STATUS":
		return nil, l.cni.GetStatusNetworkList(ctx, l.list)
	}
	return nil, fmt.Errorf("libcni has no command %q", step.Command)
}

func (l *libcniLibrary) executions() []string { return l.exec.executions }

func runtimeConf(step step) *libcni.RuntimeConf {
	conf := &libcni.RuntimeConf{
		ContainerID:    step.ContainerID,
		NetNS:          step.Netns,
		IfName:         step.Ifname,
		CapabilityArgs: step.CapabilityArgs,
	}
	for _, key := range slices.Sorted(maps.Keys(step.Args)) {
		conf.Args = append(conf.Args, [2]string{key, step.Args[key]})
	}
	return conf
}

// A recorder notes which plugins libcni executes.
type recorder struct {
	invoke.DefaultExec
	executions []string
}

func (r *recorder) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	for _, variable := range environ {
		if command, found := strings.CutPrefix(variable, "CNI_COMMAND="); found {
			r.executions = append(r.executions, filepath.Base(path)+" "+command)
		}
	}
	return r.DefaultExec.ExecPlugin(ctx, path, stdin, environ)
}
