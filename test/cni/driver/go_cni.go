package main

import (
	"context"
	"fmt"

	gocni "github.com/containerd/go-cni"
)

type goCniLibrary struct{ cni gocni.CNI }

// The configuration's network only: containerd puts that of the loopback before it, whose version has no CHECK.
func openGoCni(scenario scenario) (library, error) {
	cni, err := gocni.New(gocni.WithPluginDir(scenario.PluginFolders), gocni.WithInterfacePrefix("eth"))
	if err != nil {
		return nil, err
	}
	if err := cni.Load(gocni.WithConfListBytes(scenario.Configuration)); err != nil {
		return nil, err
	}
	return &goCniLibrary{cni}, nil
}

func (l *goCniLibrary) run(ctx context.Context, step step) (any, error) {
	options := []gocni.NamespaceOpts{gocni.WithLabels(step.Args)}
	for name, value := range step.CapabilityArgs {
		options = append(options, gocni.WithCapability(name, value))
	}
	switch step.Command {
	case "ADD":
		result, err := l.cni.Setup(ctx, step.ContainerID, step.Netns, options...)
		if err != nil {
			return nil, err
		}
		return result.Raw()[0], nil
	case "CHECK":
		return nil, l.cni.Check(ctx, step.ContainerID, step.Netns, options...)
	case "DEL":
		return nil, l.cni.Remove(ctx, step.ContainerID, step.Netns, options...)
	case "STATUS":
		return nil, l.cni.Status()
	}
	return nil, fmt.Errorf("go-cni has no command %q", step.Command)
}

func (l *goCniLibrary) executions() []string { return nil }
