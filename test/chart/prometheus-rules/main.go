// Command prometheus-rules reads groups of alerting rules on stdin, and prints what Prometheus itself has to say against
// them, an error a line.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, errs := rulefmt.Parse(text, false, model.UTF8Validation)
	for _, err := range errs {
		fmt.Println(err)
	}
}
