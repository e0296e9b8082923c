package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

type options struct {
	targets []string
	// TCP flows to each target.
	busy, idle int
	// UDP flows to each target.
	udp int
	// New TCP connections to each target per second.
	rate int
}

// All times are milliseconds since the program began, by the monotonic clock of its node.
type report struct {
	MarkedAtMs float64 `json:"markedAtMs"`
	EndedAtMs  float64 `json:"endedAtMs"`
	// The longest time that the program itself did not get to run since the mark: no gap is known more exactly.
	LongestStallMs float64        `json:"longestStallMs"`
	Flows          []flowReport   `json:"flows"`
	Connections    []*connections `json:"connections"`
}

var began = time.Now()

func now() float64 { return math.Round(float64(time.Since(began).Microseconds())/100) / 10 }

// load opens its flows and prints "ready" with the gateway of each TCP flow. Then it reads lines: at "mark" it notes the
// time and prints "marked", and at "stop", or at the end of its input, it prints its report as a line of JSON.
func load(given options, input io.Reader, output io.Writer) error {
	flows, err := openFlows(given)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, each := range flows {
		working.Go(func() { each.run(stop) })
	}
	var connecting []*connections
	for _, target := range given.targets {
		one := &connections{Target: target, SuccessesMs: []float64{}, Failures: []failure{}}
		connecting = append(connecting, one)
		working.Go(func() { one.run(given.rate, stop) })
	}
	stalls := &stallWatch{}
	go stalls.run()

	fmt.Fprintln(output, "ready", strings.Join(gatewaysOf(flows), " "))
	markedAtMs := 0.0
	lines := bufio.NewScanner(input)
	for lines.Scan() && lines.Text() != "stop" {
		if lines.Text() == "mark" {
			markedAtMs = now()
			stalls.forget()
			for _, each := range flows {
				each.forgetGap()
			}
			fmt.Fprintln(output, "marked")
		}
	}
	endedAtMs := now()
	longestStallMs := stalls.longest()
	close(stop)
	working.Wait()

	all := report{markedAtMs, endedAtMs, longestStallMs, []flowReport{}, connecting}
	for _, each := range flows {
		all.Flows = append(all.Flows, each.report())
	}
	return json.NewEncoder(output).Encode(all)
}

const stallCheck = 50 * time.Millisecond

// stallWatch knows for how long the program did not run although it wanted to.
type stallWatch struct {
	mutex sync.Mutex
	ms    float64
}

func (watch *stallWatch) run() {
	for {
		before := time.Now()
		time.Sleep(stallCheck)
		late := float64((time.Since(before) - stallCheck).Microseconds()) / 1000
		watch.mutex.Lock()
		watch.ms = max(watch.ms, late)
		watch.mutex.Unlock()
	}
}

func (watch *stallWatch) forget() {
	watch.mutex.Lock()
	defer watch.mutex.Unlock()
	watch.ms = 0
}

func (watch *stallWatch) longest() float64 {
	watch.mutex.Lock()
	defer watch.mutex.Unlock()
	return watch.ms
}
