package main

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	openTimeout = 30 * time.Second
	// Of a busy flow; of many of them less often, because an emulated node could do nothing else.
	busyEvery = 500 * time.Millisecond
	// Between two questions of all busy flows to a target.
	questionEvery = 250 * time.Millisecond
	idleEvery     = 90 * time.Second
	udpEvery      = 500 * time.Millisecond
	// How long the last answer of a flow may take.
	lastPatience = 10 * time.Second
)

type flowReport struct {
	Protocol string `json:"protocol"`
	Target   string `json:"target"`
	IsIdle   bool   `json:"isIdle"`
	// The address that the server saw first.
	Gateway string `json:"gateway"`
	// survived: the last question was answered. reset: the kernel ended it. broken: the last question was not answered.
	End string `json:"end"`
	// When it was reset, or sent the first question that was not answered; absent of one that survived.
	EndedAtMs float64 `json:"endedAtMs,omitempty"`
	Error     string  `json:"error,omitempty"`
	// The longest time since the mark from a question to the next answer, and when that question was sent.
	LongestGapMs   float64 `json:"longestGapMs"`
	LongestGapAtMs float64 `json:"longestGapAtMs"`
}

// flow asks numbered questions until it is stopped, and then a last one. One of TCP asks nothing while an answer is due.
type flow struct {
	about      flowReport
	connection net.Conn
	every      time.Duration
	first      time.Duration
	answered   chan struct{}
	ended      chan struct{}
	mutex      sync.Mutex
	// When each question was sent.
	askedMs []float64
	// How many of them are answered; one that was overtaken by a later one counts.
	answers int
}

// openFlows opens all flows, some of them at a time: a node that begins all at once is busy with nothing else.
func openFlows(given options) ([]*flow, error) {
	var flows []*flow
	every := max(busyEvery, questionEvery*time.Duration(given.busy))
	for _, target := range given.targets {
		for index := range given.busy + given.idle + given.udp {
			one := &flow{answered: make(chan struct{}, 1), ended: make(chan struct{})}
			one.about = flowReport{Protocol: "tcp", Target: target}
			share := time.Duration(index)
			switch {
			case index < given.busy:
				one.every = every
				one.first = every * share / time.Duration(given.busy)
			case index < given.busy+given.idle:
				one.about.IsIdle = true
				one.every = idleEvery
				one.first = idleEvery * (share - time.Duration(given.busy) + 1) / time.Duration(given.idle)
			default:
				one.about.Protocol = "udp"
				one.every = udpEvery
			}
			if err := one.open(); err != nil {
				return nil, fmt.Errorf("a %s flow to %s: %w", one.about.Protocol, target, err)
			}
			flows = append(flows, one)
		}
	}
	return flows, nil
}

func (one *flow) open() (err error) {
	if one.about.Protocol == "tcp" {
		one.connection, one.about.Gateway, err = connect(one.about.Target, openTimeout)
		return err
	}
	one.connection, err = net.Dial("udp", net.JoinHostPort(one.about.Target, port))
	return err
}

// gatewaysOf knows those of TCP flows: one of UDP may have heard nothing yet.
func gatewaysOf(flows []*flow) []string {
	var gateways []string
	for _, each := range flows {
		if each.about.Protocol == "tcp" {
			gateways = append(gateways, each.about.Gateway)
		}
	}
	return gateways
}

func (one *flow) run(stop <-chan struct{}) {
	defer one.connection.Close()
	go one.read()
	timer := time.NewTimer(one.first)
	defer timer.Stop()
	for {
		select {
		case <-one.ended:
			return
		case <-stop:
			one.finish()
			return
		case <-timer.C:
			timer.Reset(one.every)
			if one.mayAsk() {
				one.ask()
			}
		}
	}
}

func (one *flow) ask() {
	one.mutex.Lock()
	one.askedMs = append(one.askedMs, now())
	number := len(one.askedMs)
	one.mutex.Unlock()
	// What is wrong with a TCP flow is what its reader is told; UDP goes on.
	fmt.Fprintln(one.connection, number)
}

func (one *flow) mayAsk() bool {
	return one.about.Protocol == "udp" || one.overdueSinceMs() == 0
}

// overdueSinceMs is when the first question without an answer was sent; 0 if all are answered.
func (one *flow) overdueSinceMs() float64 {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if one.answers == len(one.askedMs) {
		return 0
	}
	return one.askedMs[one.answers]
}

func (one *flow) read() {
	reader := bufio.NewReader(one.connection)
	for {
		line, err := reader.ReadString('\n')
		switch {
		case err == nil:
			one.hear(strings.Fields(line))
		case one.about.Protocol == "tcp":
			one.end("reset", now(), nameOf(err))
			return
		default:
			select {
			case <-one.ended:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// hear takes in an answer: the number of the question, behind the gateway's address where it is UDP.
func (one *flow) hear(words []string) {
	number, err := strconv.Atoi(words[len(words)-1])
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if err != nil || number <= one.answers || number > len(one.askedMs) {
		return
	}
	if one.about.Gateway == "" {
		one.about.Gateway = words[0]
	}
	askedAtMs := one.askedMs[one.answers]
	if gapMs := now() - askedAtMs; gapMs > one.about.LongestGapMs {
		one.about.LongestGapMs, one.about.LongestGapAtMs = gapMs, askedAtMs
	}
	one.answers = number
	select {
	case one.answered <- struct{}{}:
	default:
	}
}

// finish asks a last time, and waits for the answer.
func (one *flow) finish() {
	select {
	case <-one.answered:
	default:
	}
	if one.mayAsk() {
		one.ask()
	}
	patience := time.After(lastPatience)
	again := time.NewTicker(udpEvery)
	defer again.Stop()
	for {
		select {
		case <-one.ended:
			return
		case <-one.answered:
			one.end("survived", 0, "")
			return
		case <-patience:
			one.end("broken", one.overdueSinceMs(), "")
			return
		case <-again.C:
			if one.about.Protocol == "udp" {
				one.ask()
			}
		}
	}
}

// end notes the first end of a flow.
func (one *flow) end(how string, atMs float64, reason string) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if one.about.End != "" {
		return
	}
	one.about.End, one.about.EndedAtMs, one.about.Error = how, atMs, reason
	close(one.ended)
}

func (one *flow) forgetGap() {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.about.LongestGapMs = 0
}

func (one *flow) report() flowReport {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	return one.about
}
