// Command driver executes CNI plugins as container runtimes do, through the libraries that these use: libcni, and
// go-cni, which is containerd's. It reads a scenario from stdin and prints what each of its steps was answered, both as
// JSON. The module's tools are upstream's plugins and cnitool, so that all of them are built at once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/containernetworking/cni/pkg/types"
)

type scenario struct {
	// The library: "libcni" or "go-cni".
	Through       string
	PluginFolders []string
	// Where libcni keeps results between ADD and DEL; go-cni has a folder of its own.
	CacheFolder string
	// A network configuration list.
	Configuration json.RawMessage
	Steps         []step
}

type step struct {
	Command          string
	ContainerID      string
	Netns            string
	Ifname           string
	Args             map[string]string
	CapabilityArgs   map[string]any
	ValidAttachments []types.GCAttachment
}

type answer struct {
	// Plugins that were executed, each with its command, such as "bridge ADD"; known through libcni only.
	Executions []string `json:"executions"`
	Result     any      `json:"result,omitempty"`
	Error      *failure `json:"error,omitempty"`
}

type failure struct {
	// As the plugin said; absent where the library refused to go on.
	Code    *uint  `json:"code,omitempty"`
	Message string `json:"message"`
}

// A library that runs plugins. The result is nil where the command has none.
type library interface {
	run(ctx context.Context, step step) (any, error)
	executions() []string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var scenario scenario
	if err := json.NewDecoder(os.Stdin).Decode(&scenario); err != nil {
		return err
	}
	library, err := open(scenario)
	if err != nil {
		return err
	}
	answers := []answer{}
	for _, step := range scenario.Steps {
		result, err := library.run(context.Background(), step)
		answers = append(answers, answer{Executions: library.executions(), Result: result, Error: failureOf(err)})
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

func open(scenario scenario) (library, error) {
	switch scenario.Through {
	case "libcni":
		return openLibcni(scenario)
	case "go-cni":
		return openGoCni(scenario)
	}
	return nil, fmt.Errorf("there is no library %q", scenario.Through)
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	var told *types.Error
	if errors.As(err, &told) {
		return &failure{Code: &told.Code, Message: told.Msg}
	}
	return &failure{Message: err.Error()}
}
