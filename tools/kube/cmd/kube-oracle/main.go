// What kube-scheduler itself answers to the questions of `bayplan decide pods` and `decide preemption`, one JSON line
// each: its own event handlers, cache, profile and plugins, in one process and without an API server. Nothing is bound.
//
// A question may also hold `steps`, changes of a living cluster with decisions between them; living.go describes them.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

const usage = "usage: kube-oracle [-attempts N] pods|preemption < QUESTIONS > ANSWERS"

// attempts is how often a preemption is asked for: kube-scheduler chooses at random between nodes that are equally good,
// and every choice that was seen is reported.
var attempts = flag.Int("attempts", 2, "how often a preemption is tried, to see what it chooses between at random")

type answerer func(*question) (any, error)

func main() {
	flag.Parse()
	kinds := map[string]answerer{"pods": answerPods, "preemption": answerPreemption}
	answer := kinds[flag.Arg(0)]
	if answer == nil || flag.NArg() != 1 {
		fail(errors.New(usage))
	}
	if err := prepare(); err != nil {
		fail(err)
	}
	if err := answerAll(os.Stdin, os.Stdout, answer); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kube-oracle:", err)
	os.Exit(2)
}

// prepare drops the log, and has preemption wait for its API calls, so that all victims are known when it returns. No
// other setting differs from the defaults.
func prepare() error {
	flags := flag.NewFlagSet("log", flag.ContinueOnError)
	klog.InitFlags(flags)
	klog.SetOutput(io.Discard)
	return errors.Join(
		flags.Set("logtostderr", "false"),
		flags.Set("stderrthreshold", "FATAL"),
		utilfeature.DefaultMutableFeatureGate.Set("SchedulerAsyncPreemption=false"),
	)
}

// answerAll answers in the order of the questions, several at a time.
func answerAll(from io.Reader, to io.Writer, answer answerer) error {
	waiting := make(chan chan []byte, 4*runtime.GOMAXPROCS(0))
	lines := bufio.NewReaderSize(from, 1<<20)
	var reading error
	go func() {
		defer close(waiting)
		slots := make(chan struct{}, runtime.GOMAXPROCS(0))
		for number := 1; ; number++ {
			line, err := lines.ReadBytes('\n')
			if len(bytes.TrimSpace(line)) > 0 {
				done := make(chan []byte, 1)
				waiting <- done
				slots <- struct{}{}
				go func() {
					done <- answerLine(line, number, answer)
					<-slots
				}()
			}
			if err != nil {
				if err != io.EOF {
					reading = err
				}
				return
			}
		}
	}()
	out := bufio.NewWriterSize(to, 1<<20)
	for done := range waiting {
		if _, err := out.Write(append(<-done, '\n')); err != nil {
			return err
		}
	}
	return errors.Join(reading, out.Flush())
}

// answerLine reports what cannot be answered in the place of the answer, as `bayplan decide` does.
func answerLine(line []byte, number int, answer answerer) (encoded []byte) {
	name := ""
	refuse := func(reason any) []byte {
		text, _ := json.Marshal(map[string]any{"line": number, "name": name, "error": fmt.Sprint(reason)})
		return text
	}
	defer func() {
		if problem := recover(); problem != nil {
			encoded = refuse(fmt.Sprintf("panic: %v", problem))
		}
	}()
	asked := &question{}
	if err := json.Unmarshal(line, asked); err != nil {
		return refuse(err)
	}
	name = asked.Name
	given, err := answer(asked)
	if err != nil {
		return refuse(err)
	}
	text, err := json.Marshal(given)
	if err != nil {
		return refuse(err)
	}
	return text
}
